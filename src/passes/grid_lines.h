// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Grids whose x is a function of the column alone and whose y of the row alone, and among those the
// ones that a Resize of a part of the image samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "passes/grid_sample_form.h"

namespace tenonnx {

// How far a pixel coordinate may be from the formula that it is taken for: 8 units in the last
// place of a float32 coordinate of that size. AffineGrid rounds less than 8 times on its way.
double line_tolerance(std::int64_t size);

struct GridLines {
  std::vector<float> x, y;  // coordinates of the grid: of each column, of each row
};
// Returns why the grid of one image is not separable: which coordinate changes along what.
std::string grid_lines(const GridSampleNode& site, const Tensor& grid, std::int64_t image,
                       GridLines& lines);

// Output j of a Resize from the pixels begin..begin + in - 1 to `out` outputs, of which those from
// `skip` on are taken.
enum class ResizeRule {
  kHalfPixel,    // x = (j + 0.5) * in / out - 0.5, clamped to the first and last of its pixels
  kAlignCorners  // x = j * (in - 1) / (out - 1)
};
struct ResizeAxis {
  std::int64_t begin = 0, in = 0, out = 0, skip = 0;
  bool identity() const { return in == out; }
};
// The Resize of the fewest outputs that samples an axis of `size` pixels at `at` (pixels), where
// there is one. At a coordinate outside of 0..size - 1 it clamps, as padding border does: the
// caller decides whether that is right.
std::optional<ResizeAxis> find_resize(const std::vector<double>& at, std::int64_t size,
                                      ResizeRule rule);

}  // namespace tenonnx
