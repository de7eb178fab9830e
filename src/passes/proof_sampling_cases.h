// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Coordinates made to reach every case of a sampling node: what a form that replaces it can get
// wrong shows at a few places only (a point in a corner, half a pixel outside, on a tie), which
// captured grids need not hold. Positions are in pixels: 0 is the middle of the first one.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

// One set of coordinates. They are apart because the noise floor of a set is its worst point's: at
// a tie "nearest" may take either pixel, and nothing else would be seen beside that.
enum class SamplingCase : std::uint8_t {
  kInside,   // centre, corners, border, whole pixels, anything between
  kTies,     // half-way between two pixels, and at -1 and 1 of the grid
  kOutside,  // by less and by more than a pixel
  kFar       // ten images away, and where int32 ends
};
inline constexpr std::array kSamplingCases = {SamplingCase::kInside, SamplingCase::kTies,
                                              SamplingCase::kOutside, SamplingCase::kFar};
std::string_view to_string(SamplingCase made);

// What a point is, of what a report counts; a point may be several of these.
struct PointKinds {
  std::int64_t points = 0;
  std::int64_t centre = 0;        // within half a pixel of the middle of the image
  std::int64_t corner = 0;        // within half a pixel of a corner pixel, inside or out
  std::int64_t border = 0;        // on the half pixel around the image
  std::int64_t tie = 0;           // half-way between two pixels along some axis
  std::int64_t outside_less = 0;  // beyond the border by less than a pixel, but not further
  std::int64_t outside_more = 0;
  std::int64_t far = 0;  // beyond ten times the size
  std::int64_t not_finite = 0;
  // `pixel`: one point, x first; `size`: pixels, width first.
  void count(std::span<const double> pixel, std::span<const std::int64_t> size);
  // The kinds of which there is none, for "not reached: ...".
  std::vector<std::string_view> missing() const;
};

// A coordinate of a grid, -1 to 1, as pixels and back (kernels/grid_sample/grid_sample.h).
double grid_to_pixel(double grid, std::int64_t size, bool align_corners);
double pixel_to_grid(double pixel, std::int64_t size, bool align_corners);
// The float32 nearest to pixel_to_grid() from which the float32 steps of ONNX Runtime come back to
// exactly `pixel`, where there is one: else a tie is none.
float exact_grid(double pixel, std::int64_t size, bool align_corners);

// Where something is sampled however far outside a point is (padding border, reflection) the
// reference has to be right there: ONNX Runtime's weights, floor(x) + 1 - x and x - floor(x) in
// float32, are both 0 from 2^24 pixels on, and its border gives 0 for the edge. Two bits less keep
// quarters of a pixel.
inline constexpr double kFarthestPadded = 0x1p22;

// The points of a case over an image, x first: `count` of them, the same for the same seed, none
// beyond `farthest`. Any kDistinctPoints points in a row, from a multiple of that on, reach all
// there is.
inline constexpr std::int64_t kDistinctPoints = 96;
std::vector<double> made_points(SamplingCase made, std::span<const std::int64_t> size,
                                std::int64_t count, std::uint64_t seed,
                                double farthest = std::numeric_limits<double>::infinity());

// Half the step of a grid between -1 and 1 stored in `dtype`, in pixels: what rounding the grid
// moves a sample. float16 has steps of 2^-11 there, bfloat16 of 2^-8, int8 of 2 / 255.
double grid_rounding(DType dtype, std::int64_t size, bool align_corners);

}  // namespace tenonnx
