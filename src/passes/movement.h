// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Nodes that hand elements on without computing anything, read as changes of a StridedView:
// Identity, Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Expand, Slice, Split, Gather of
// constant neighbours, and SequenceAt of SplitToSequence, which torch.export writes for split().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/rewriter.h"
#include "passes/strided_view.h"

namespace tenonnx {

// The tensor whose elements node `index` (-1: none) hands on; "" where it is none of these nodes.
std::string moved_from(const Rewriter& r, int index);

// Makes the view of what the node takes one of its output `output`; false where shapes are not
// known, or are not static, or a constant is missing, or modes cannot say it.
bool move(const Rewriter& r, int index, std::string_view output, StridedView& view);

// A tensor and the tensors that it is moved from, nearest first; nodes[k] makes tensors[k] of
// tensors[k + 1].
struct MovementChain {
  std::vector<std::string> tensors;
  std::vector<int> nodes;

  // The first tensor, seen in tensors[k].
  std::optional<StridedView> view(const Rewriter& r, std::size_t k) const;
};
MovementChain movement_chain(const Rewriter& r, std::string_view tensor);

}  // namespace tenonnx
