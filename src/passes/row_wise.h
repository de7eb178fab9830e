// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Operators of which each row of the output depends on the same row of the inputs alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "passes/row_gather.h"

namespace tenonnx {

// Where the rows of each input of a node are, for rows of its output at `axis`; an input that is
// not given, or that is no data (axes, a shape), has none. nullopt where the node is not row-wise
// there; `why` says it.
std::optional<std::vector<RowPlace>> row_wise_inputs(const Rewriter& r, int node,
                                                     const RowGather& gather, std::size_t axis,
                                                     std::string& why);

// Multiplications and other steps of one run of the node.
double node_work(const Rewriter& r, int node);

}  // namespace tenonnx
