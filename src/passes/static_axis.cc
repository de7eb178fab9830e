// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/static_axis.h"

#include <algorithm>
#include <cmath>

namespace tenonnx {
namespace {

constexpr float kFarthest = 1 << 30;  // as grid_sample_taps.cc

float padded(const GridSampleNode& site, float x, float size) {
  const GridSampleOptions& options = site.options;
  const bool round = options.mode == GridSampleMode::kNearest;
  const auto rounded = [&](float v) { return round ? std::nearbyint(v) : v; };
  switch (options.padding) {
    case GridSamplePadding::kZeros:
      return rounded(x > -1 && x < size ? x : size);
    case GridSamplePadding::kBorder:
      return rounded(std::min(x > 0 ? x : 0.0F, size - 1));
    case GridSamplePadding::kReflection:
      break;
  }
  x = rounded(x > -kFarthest && x < kFarthest ? x : 0.0F);
  const float least = options.align_corners ? 0.0F : -0.5F;
  const float span = options.align_corners ? size - 1 : size;
  if (span == 0) return 0;
  // volatile: no step may be fused with the next.
  volatile float from = std::abs(x - least);
  volatile float whole = std::floor(from / (2 * span));
  whole = whole * (2 * span);
  volatile float rest = from - whole;
  rest = std::abs(rest - span);
  return std::clamp(span + least - rest, 0.0F, size - 1);
}

}  // namespace

AxisTapValues axis_tap_values(const GridSampleNode& site, float g, std::int64_t size) {
  const auto side = static_cast<float>(size);
  const float x = padded(site, pixel_coordinate(g, size, site.options.align_corners), side);
  AxisTapValues taps;
  const auto set = [&](int k, float at, float weight) {
    const bool inside = at >= 0 && at < side;
    taps.weight[k] = inside ? weight : 0;
    taps.index[k] = inside ? static_cast<std::int64_t>(at) : 0;
  };
  if (site.options.mode == GridSampleMode::kNearest) {
    set(0, x, 1);
    return taps;
  }
  const float x0 = std::floor(x), x1 = x0 + 1;
  set(0, x0, x1 - x);
  // At the last pixel of a padded coordinate the next one has weight 0, whatever its index.
  set(1, x1, x - x0);
  return taps;
}

}  // namespace tenonnx
