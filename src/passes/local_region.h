// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Regions that compute the same in every row of an image or a table, so that a few rows show what
// all would, in a fraction of the time.
#pragma once

#include <cstddef>
#include <cstdint>
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

// The axis, counted from the last one as 1, along which the first kStripRows of a region's inputs
// may stand for all of them, before and after; nullopt where there is none. Of one image [N,C,H,W]
// with Conv and BatchNormalization it is 2, the rows. Of element-wise operators it is the longest
// along which all constants have one element and each input one or all: one of one is taken whole.
// `shape_of`: of an input, by its name before; nullopt where it is not known or not static.
std::optional<std::size_t> strip_axis(
    const GraphIndex& before, const GraphIndex& after, const ChangedRegion& region,
    const std::function<std::optional<Shape>(const RegionTensor&)>& shape_of);

// 1 where the shape has no such axis.
std::int64_t size_along(const Shape& shape, std::size_t axis_from_last);

}  // namespace tenonnx
