// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// collapse_rank: computes in at most four dimensions what a graph writes in five or six.
//
// before: [300,192] -Reshape-> [1,300,8,3,4,2] -Mul by [1,300,1,1,1,2]-> -Gather axis 3->
// [1,300,8,4,2]
//         -Transpose 0,2,1,3,4-> [1,8,300,4,2] -Reshape-> [8,300,4,2]
// after:  [300,192] -Reshape-> [300,96,2] -Mul by [300,1,2]-> -Reshape-> [2400,3,8] -Gather axis
// 1->
//         [2400,8] -Reshape-> [300,8,8] -Transpose 1,0,2-> [8,300,8] -Reshape-> [8,300,4,2]
//
// A tensor of too many dimensions is kept under a form of fewer: neighbours merged, 1s left out
// (rank_forms.h); its data stay as they are. Each node works on a form that tells apart what it
// treats apart: operands that broadcast, the axis that is cut, the blocks that a Transpose moves.
// It takes the form in which its input comes where that will do, else every dimension larger than
// 1, else what the chain of element-wise nodes around it needs, else the fewest. Reshape, Squeeze,
// Unsqueeze and Flatten between such forms go. Operands whose broadcast alternates too often are
// expanded along the cheapest dimension, a Transpose of too many blocks becomes several.
//
// Option: max_rank (4), from 3 to 7.
// Conditions: static shapes without 0; Slice, Split, Reduce, Tile and Expand with constant
// operands. Refuses, with the node: other operators (Conv of 3-D data, ScatterND, GatherElements,
// ...), axes of size 1 for what is no plain copy there, and all where no fewer nodes of that rank
// would remain. Inputs and outputs of the graph keep their rank, and so a Reshape that touches
// them. Class bitwise: the same arithmetic on the same elements.
#include "base/status.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rank_collapser.h"

namespace tenonnx {
namespace passes {

Result<PassOutcome> collapse_rank(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("collapse_rank", options, {"max_rank"}));
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t max_rank,
                           count_option("collapse_rank", options, "max_rank", 4));
  if (max_rank < 3 || max_rank > 7)
    return InvalidArgument("collapse_rank: max_rank is {}, expected 3 to 7", max_rank);
  return RankCollapser(model, static_cast<std::size_t>(max_rank)).run();
}

}  // namespace passes
}  // namespace tenonnx
