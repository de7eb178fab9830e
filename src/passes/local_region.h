// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Regions that compute the same in every row of an image or a table, so that a few rows show what
// all would, in a fraction of the time.
#pragma once

#include <functional>
#include <optional>

#include "model/model.h"
#include "passes/region_diff.h"
#include "tenonnx/base.h"

namespace tenonnx {

// Several times as many as a kernel has; with the first rows of an image both of its upper corners
// are there, and its side edges.
inline constexpr std::int64_t kStripRows = 16;

// Whether a region, before and after, may be run on the first kStripRows rows of its inputs, along
// the last axis but one ([N,C,H,W], [N,rows,C]): element-wise operators of inputs of one shape; or
// of one image, Conv and BatchNormalization with them; all constants beside them the same in every
// row. `shape_of`: of an input, by its name before; nullopt where it is not known or not static.
// False where the inputs have no more rows than that.
bool takes_strips(const Model& before, const Model& after, const ChangedRegion& region,
                  const std::function<std::optional<Shape>(const RegionTensor&)>& shape_of);

}  // namespace tenonnx
