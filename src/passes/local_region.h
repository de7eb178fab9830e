// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Regions that compute the same in every row of an image or a table, so that a few rows show what
// all would, in a fraction of the time.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "model/graph.h"
#include "passes/region_diff.h"
#include "tenonnx/base.h"

namespace tenonnx {

// Rows at the beginning of an axis, counted from the last one as 1.
struct Strip {
  std::size_t axis = 0;
  std::int64_t rows = 0;
  auto operator<=>(const Strip&) const = default;
};

// With the first rows of an image both of its upper corners are there, its side edges, and every
// row of a kernel of up to 7 that is padded. Each row counts: of rtdetr_r18 16 rows of all
// convolutions take 0.08 s.
inline constexpr std::int64_t kImageRows = 4;
// Of a table, whose rows may be short: so many elements at least, not all of which a Clip clips.
// Less is no more than what the nodes cost that cut it.
inline constexpr std::int64_t kTableElements = std::int64_t{1} << 16;

// What of a region's inputs may stand for all of them, before and after; nullopt where there is
// none or they have no more rows. Of one image [N,C,H,W] with Conv and BatchNormalization the axis
// is 2, the rows, where each row of the kernel meets one of the strip. Of element-wise operators it
// is the longest along which all constants have one element and each input one or all: one of one
// is taken whole. `shape_of`: of an input, by its name before; nullopt where it is not known or not
// static.
std::optional<Strip> strip_of(
    const GraphIndex& before, const GraphIndex& after, const ChangedRegion& region,
    const std::function<std::optional<Shape>(const RegionTensor&)>& shape_of);

// 1 where the shape has no such axis.
std::int64_t size_along(const Shape& shape, std::size_t axis_from_last);

}  // namespace tenonnx
