// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What crosses between the segments of a package is said to be tensors of the source model
// (Manifest::boundaries). Nothing else looks at these names: two that are exchanged leave every
// output as it was, and whoever compares "feature_1" with the tensor of that name is led astray.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "metrics/limit.h"
#include "model/model.h"
#include "ort/executor.h"

namespace tenonnx {

// On the same cpu, other fusions apart: cosine of the same tensor is 1 - 1e-12 on the example, that
// of neighbouring features at most 0.7.
inline constexpr double kSameTensorCosine = 0.9999;

class BoundarySources {
 public:
  using Names = std::vector<std::pair<std::string, std::string>>;  // boundary -> source tensor

  // The source model on the cpu, with these tensors as its outputs. Those that it does not have are
  // left out: check() says so.
  static Result<BoundarySources> load(const Model& source, const Names& boundaries,
                                      const LoadOptions& options);

  // What the model has at each, by boundary name.
  Result<TensorMap> run(const TensorMap& inputs) const;

  // `crossed` against run() of the same inputs: dtype and shape, and where `values` is set the
  // cosine, but not of `selected` (selected_rows.h). Keeps the first thing wrong of each boundary.
  Status compare(const TensorMap& own, const TensorMap& crossed,
                 const std::set<std::string>& selected, bool values);

  // How many boundaries are not what they are said to be; INCONCLUSIVE for a tensor that the source
  // model does not have.
  Check check() const;

 private:
  Names boundaries_;
  std::vector<std::string> missing_;          // sentences
  std::map<std::string, std::string> wrong_;  // boundary -> sentence
  std::shared_ptr<LoadedGraph> graph_;        // nullptr: the source has none of them
};

}  // namespace tenonnx
