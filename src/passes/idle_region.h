// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Regions that need no run: what they computed is their input, whatever it holds.
#pragma once

#include <optional>

#include "model/graph.h"
#include "model/model.h"
#include "passes/region_diff.h"
#include "tenonnx/base.h"

namespace tenonnx {

// Whether the region was one addition of 0 or multiplication by 1 and is nothing now, so that every
// element is what it was but for the sign of a zero: -0 + 0 is +0. `shape`: of its input.
bool gave_its_input(const Model& before, const GraphIndex& index, const ChangedRegion& region,
                    const std::optional<Shape>& shape);

}  // namespace tenonnx
