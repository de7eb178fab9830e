// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Values of the boundary tensors of changed regions, in the graph before the pass.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/graph.h"
#include "model/model.h"
#include "model/shapes.h"
#include "ort/executor.h"
#include "passes/region_diff.h"

namespace tenonnx {

class BoundaryCapture {
 public:
  // Everything but `regions` must outlive it. `infos`: types of the graph's tensors.
  BoundaryCapture(const Executor& executor, int threads, const Model& before,
                  const GraphIndex& index, const TensorInfos& infos,
                  std::span<const ChangedRegion* const> regions);

  // By name. `real`: the inputs of the model. The graph is loaded with the first call, optimisation
  // disabled. InvalidArgument where an input that is a boundary has no value.
  Result<TensorMap> take(const TensorMap& real);

 private:
  const Executor& executor_;
  const int threads_;
  const Model& before_;
  const TensorInfos& infos_;
  std::vector<std::string> inputs_, constants_, computed_;
  std::unique_ptr<LoadedGraph> graph_;
};

}  // namespace tenonnx
