// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// From errors to suspects: nodes whose own error stands out, with the kind of fault that gives it.
#pragma once

#include <set>
#include <vector>

#include "numerics/locate.h"
#include "numerics/own_errors.h"

namespace tenonnx {

// At most `count`, by falling ratio of the own error to its floor; of one node one, and of several
// that all meet one value beyond the storage's range the first. Where no own error stands out,
// those with the largest ratios: of them `stands_out` is false.
struct RankedSuspects {
  std::vector<Suspect> suspects;
  bool stands_out = false;
  // Nodes of the candidate with an own error beyond its limit, by falling ratio; culprits of range
  // faults are among them.
  std::vector<int> failing;
};
Result<RankedSuspects> rank_suspects(const CompareSetup& setup, const ErrorTable& table,
                                     const LoadOptions& load, std::size_t count);

// What differs between two pieces of graphs, for people, and the kind that it is: "epsilon is
// 0.001, in the reference 1e-05". Empty text where nothing does. `names`: tensors of the candidate
// that both have.
KindFinding graph_difference(const Model& reference, const Model& candidate,
                             const FedTensors& names);

}  // namespace tenonnx
