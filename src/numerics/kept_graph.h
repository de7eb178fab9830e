// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The candidate's graph with some of its nodes kept at the reference: the same nodes where both
// sides run one graph, else the reference's piece between the tensors that both have.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flow/compare_setup.h"
#include "model/graph.h"
#include "numerics/own_errors.h"

namespace tenonnx {

struct KeptGraph {
  const Model* model = nullptr;  // the candidate's, or `own`
  std::optional<Model> own;
  std::set<int> kept;  // nodes of `model`

  KeptGraph() = default;
  KeptGraph(KeptGraph&& other) noexcept;
  KeptGraph& operator=(KeptGraph&& other) noexcept;
};

class KeptGraphs {
 public:
  // `table` says which tensors both graphs have. `setup` outlives it. FailedPrecondition where the
  // nodes of two graphs cannot stand in one (other opsets).
  static Result<KeptGraphs> make(const CompareSetup& setup, const ErrorTable& table);

  // `nodes` of the candidate's graph. A node whose results the reference does not have (a part of a
  // piece) stays with the piece that it is in.
  Result<KeptGraph> keep(const std::set<int>& nodes) const;
  // Whether both graphs have the tensor `name` of the candidate: elsewhere nothing can be
  // exchanged.
  bool both_have(std::string_view name) const;

 private:
  const CompareSetup* setup_ = nullptr;
  // Of two graphs: the reference's under the candidate's names, what it does not share prefixed.
  std::optional<Model> renamed_;
  std::set<std::string, std::less<>> shared_;  // computed tensors, under the candidate's names
};

}  // namespace tenonnx
