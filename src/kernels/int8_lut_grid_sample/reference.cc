// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "kernels/int8_lut_grid_sample/int8_lut_grid_sample.h"

namespace tenonnx {
namespace {

std::string side(const char* name, std::int64_t value) {
  return std::string(name) + " is " + std::to_string(value);
}

// floor(256 x + 1/2), moved to where all neighbours are outside (zeros) or to the edge (border).
std::int32_t fixed_point(float g, const Int8LutAxis& axis) {
  const double at = static_cast<double>(g) * axis.scale + axis.offset;
  if (std::isnan(at)) return static_cast<std::int32_t>(axis.low) - Int8LutAxis::kShift;
  return static_cast<std::int32_t>(std::floor(std::clamp(at, axis.low, axis.high))) -
         Int8LutAxis::kShift;
}

}  // namespace

std::string Int8LutGridSample::check() const {
  if (batch < 0 || out_height < 0 || out_width < 0) return "a negative batch or output size";
  if (channels < 1) return side("the number of channels", channels) + ", at least 1 is needed";
  // 256 x has to fit 31 bits, its product with a float32 the 53 bits of a double.
  constexpr std::int64_t kMost = 1 << 22;
  if (height < 1 || height > kMost) return side("the height", height) + ", 1 to 2^22 are possible";
  if (width < 1 || width > kMost) return side("the width", width) + ", 1 to 2^22 are possible";
  constexpr std::int64_t kElements = std::int64_t{1} << 40;
  if (height * width >= std::int64_t{1} << 31) return "an image has more than 2^31 pixels";
  if (channels > kElements / (height * width)) return "an image has more than 2^40 values";
  for (const auto& [name, scale] :
       {std::pair{"value_scale", value_scale}, {"out_scale", out_scale}})
    if (!(scale > 0) || !std::isfinite(scale))
      return std::string(name) + " is " + std::to_string(scale) +
             ": a finite number above 0 is needed";
  for (const auto& [name, zero] :
       {std::pair{"value_zero_point", value_zero_point}, {"out_zero_point", out_zero_point}})
    if (zero < -128 || zero > 127) return side(name, zero) + ", -128 to 127 (int8) are possible";
  if (!std::isfinite(multiplier(true)) || !(multiplier(true) > 0))
    return "value_scale / out_scale is beyond float32";
  return {};
}

template <typename T>
void int8_lut_grid_sample_reference(const Int8LutGridSample& call, const std::int8_t* value,
                                    const float* grid, T* out) {
  const std::int64_t channels = call.channels, pixels = call.pixels(), points = call.points();
  const Int8LutAxis axis_x = Int8LutAxis::of(call.width, call.align_corners, call.padding);
  const Int8LutAxis axis_y = Int8LutAxis::of(call.height, call.align_corners, call.padding);
  const float multiplier = call.multiplier(std::is_same_v<T, std::int8_t>);
  for (std::int64_t n = 0; n < call.batch; ++n) {
    for (std::int64_t p = 0; p < points; ++p) {
      const std::int32_t qx = fixed_point(grid[2 * (n * points + p)], axis_x);
      const std::int32_t qy = fixed_point(grid[2 * (n * points + p) + 1], axis_y);
      for (std::int64_t c = 0; c < channels; ++c) {
        std::int32_t acc = 0;
        for (int corner = 0; corner < 4; ++corner) {
          const std::int32_t right = corner & 1, below = corner >> 1;
          const auto fx = static_cast<std::size_t>(qx & 255),
                     fy = static_cast<std::size_t>(qy & 255);
          const std::int32_t weight = (right ? kInt8LutWeights.w1[fx] : kInt8LutWeights.w0[fx]) *
                                      (below ? kInt8LutWeights.w1[fy] : kInt8LutWeights.w0[fy]);
          std::int64_t x = (qx >> 8) + right, y = (qy >> 8) + below;
          if (call.padding == Int8LutPadding::kBorder) {
            x = std::clamp<std::int64_t>(x, 0, call.width - 1);
            y = std::clamp<std::int64_t>(y, 0, call.height - 1);
          }
          std::int32_t tap = call.value_zero_point;
          if (x >= 0 && x < call.width && y >= 0 && y < call.height) {
            const std::int64_t pixel = y * call.width + x;
            tap = value[call.channels_last ? (n * pixels + pixel) * channels + c
                                           : (n * channels + c) * pixels + pixel];
          }
          acc += weight * tap;
        }
        const float product =
            static_cast<float>(acc - kInt8LutOne * call.value_zero_point) * multiplier;
        T& to = out[call.channels_last ? (n * points + p) * channels + c
                                       : (n * channels + c) * points + p];
        if constexpr (std::is_same_v<T, std::int8_t>) {
          const float limited = std::clamp(product, -65536.0F, 65536.0F);
          const auto rounded = static_cast<std::int32_t>(std::nearbyint(limited));
          to = static_cast<std::int8_t>(std::clamp(rounded + call.out_zero_point, -128, 127));
        } else {
          to = product;
        }
      }
    }
  }
}

template void int8_lut_grid_sample_reference(const Int8LutGridSample&, const std::int8_t*,
                                             const float*, std::int8_t*);
template void int8_lut_grid_sample_reference(const Int8LutGridSample&, const std::int8_t*,
                                             const float*, float*);

}  // namespace tenonnx
