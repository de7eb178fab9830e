// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Regions that compute the same in every row of an image or a table, so that a few rows show what
// all would, in a fraction of the time.
#pragma once

#include <functional>
#include <optional>

#include "model/graph.h"
#include "passes/region_diff.h"
#include "tenonnx/base.h"

namespace tenonnx {

// More than a kernel has; with the first rows of an image both of its upper corners are there, and
// its side edges. Each row counts: of rtdetr_r18 16 rows of all convolutions take 0.08 s, and a
// check runs them four times.
inline constexpr std::int64_t kStripRows = 8;

// Whether a region, before and after, may be run on the first kStripRows rows of its inputs, along
// the last axis but one ([N,C,H,W], [N,rows,C]): element-wise operators of inputs of one shape; or
// of one image, Conv and BatchNormalization with them; all constants beside them the same in every
// row. `shape_of`: of an input, by its name before; nullopt where it is not known or not static.
// False where the inputs have no more rows than that.
bool takes_strips(const GraphIndex& before, const GraphIndex& after, const ChangedRegion& region,
                  const std::function<std::optional<Shape>(const RegionTensor&)>& shape_of);

}  // namespace tenonnx
