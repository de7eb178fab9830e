// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Bilinear grid sampling of int8 values in fixed point, as integer devices compute it.
//
//   coordinate   q = floor(256 x + 1/2) for each axis, where x is the pixel coordinate of ONNX
//                GridSample-20: ((g + 1) * size - 1) / 2, or (g + 1) / 2 * (size - 1) with
//                align_corners. q >> 8 is the whole pixel, f = q & 255 the fraction. The product
//                with g is exact in double and the sum rounds once, so that q does not depend on
//                the instruction set.
//   weights      two 8-bit tables over the 256 fractions, w1[f] = round(255 f / 256) and
//                w0[f] = 255 - w1[f]. They sum to 255, so that a row, v0 * w0 + v1 * w1, fits 16
//                bits (128 * 255 = 32640) and four taps fit 25.
//   sum          acc = sum of w_y * w_x * tap over the four neighbours, int32, in units of
//                value_scale / 65025 once 65025 * value_zero_point is taken away
//   output       int8: round(acc * (value_scale / 65025 / out_scale)) + out_zero_point, saturated;
//                one float32 product, rounded half to even as ONNX QuantizeLinear does.
//                float32: acc * (value_scale / 65025).
//
// Each neighbour is padded on its own: zeros takes the zero point for one outside, border the
// nearest pixel inside. A coordinate of NaN samples nothing with zeros (the result is zero), pixel
// 0 with border; an infinite one samples nothing with zeros, the edge with border.
//
// Error against float bilinear sampling of the same int8 values, in units of the value: a
// coordinate is off by at most 1/512 pixel, a weight by 1/510, thus for each axis at most
// kAxisError times the largest difference of two neighbours along it in the padded image:
//
//   |out - exact| <= value_scale * kAxisError * (step_x + step_y) + 2^-22 * |exact|
//                    + out_scale / 2 where it is int8 and does not saturate
//
// Steps are at most 255, so never more than 2 units of value_scale before the output is rounded.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "kernels/parallel.h"

namespace tenonnx {

inline constexpr double kInt8LutAxisError = 1.0 / 512 + 1.0 / 510;
inline constexpr std::int32_t kInt8LutOne = 255 * 255;  // the sum of the four weights

struct Int8LutWeights {
  std::array<std::uint8_t, 256> w0, w1;
};
constexpr Int8LutWeights int8_lut_weights() {
  Int8LutWeights made{};
  for (int f = 0; f < 256; ++f) {
    const int w1 = (255 * f + 128) / 256;
    made.w1[static_cast<std::size_t>(f)] = static_cast<std::uint8_t>(w1);
    made.w0[static_cast<std::size_t>(f)] = static_cast<std::uint8_t>(255 - w1);
  }
  return made;
}
inline constexpr Int8LutWeights kInt8LutWeights = int8_lut_weights();

enum class Int8LutPadding { kZeros, kBorder };

struct Int8LutGridSample {
  std::int64_t batch = 0, channels = 0, height = 0, width = 0;  // of the values
  std::int64_t out_height = 0, out_width = 0;                   // of the grid
  bool channels_last = false;  // values [N,H,W,C] and output [N,Ho,Wo,C]; else C comes second
  bool align_corners = false;
  Int8LutPadding padding = Int8LutPadding::kZeros;
  float value_scale = 1;
  std::int32_t value_zero_point = 0;  // int8
  float out_scale = 1;
  std::int32_t out_zero_point = 0;  // int8

  std::int64_t points() const { return out_height * out_width; }  // of one image
  std::int64_t pixels() const { return height * width; }
  // acc times this is the output before its zero point is added.
  float multiplier(bool int8_output) const {
    const double unit = static_cast<double>(value_scale) / kInt8LutOne;
    return static_cast<float>(int8_output ? unit / static_cast<double>(out_scale) : unit);
  }
  // Empty, or what is wrong.
  std::string check() const;
};

// 256 x + 512 before rounding down, of one axis: scale * g + offset. The 512 keep what samples
// something positive, so that truncation rounds down.
struct Int8LutAxis {
  double scale, offset;
  double low, high;  // what is outside is moved here; NaN to low
  static constexpr std::int32_t kShift = 512;
  static Int8LutAxis of(std::int64_t size, bool align_corners, Int8LutPadding padding) {
    const auto last = static_cast<double>(size - 1);
    const bool zeros = padding == Int8LutPadding::kZeros;
    return {128.0 * (align_corners ? last : last + 1), 128.0 * last + kShift + 0.5,
            zeros ? 0.0 : kShift, 256.0 * (zeros ? last + 2 : last) + kShift};
  }
};

// value: int8, grid: float32 [N, Ho, Wo, 2] of (x, y), out: int8 or float32. Contiguous, not
// overlapping. The fastest instruction set that the processor has; all give the same bits.
template <typename T>
void int8_lut_grid_sample(const Int8LutGridSample& call, const std::int8_t* value,
                          const float* grid, T* out, const Parallel& parallel);

// Plain integer loops: the definition, bit for bit.
template <typename T>
void int8_lut_grid_sample_reference(const Int8LutGridSample& call, const std::int8_t* value,
                                    const float* grid, T* out);

}  // namespace tenonnx
