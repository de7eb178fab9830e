// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which regions of an algebraic change are likely to give other bits than before: a guess, for
// whoever has to keep what a floor is measured on, and nothing is proved by it.
#pragma once

#include "model/graph.h"
#include "model/model.h"
#include "passes/region_diff.h"

namespace tenonnx {

// False where both sides round the same number of times by the same operators: elements are moved,
// cast or selected in another way, or an operation with a constant of no effect (x + 0, x * 1) is
// gone.
bool may_round_otherwise(const Model& before, const GraphIndex& before_index,
                         const GraphIndex& after_index, const ChangedRegion& region);

}  // namespace tenonnx
