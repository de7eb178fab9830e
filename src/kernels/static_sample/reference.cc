// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>

#include "kernels/static_sample/static_sample.h"

namespace tenonnx {
namespace {

struct Tap {
  std::int64_t pixel;
  double weight;
};

int taps_of(const StaticGrid& grid, std::int64_t image, std::int64_t point, Tap* taps) {
  int count = 0;
  if (grid.format == StaticFormat::kTaps) {
    for (std::int64_t t = 0; t < grid.taps; ++t) {
      const auto i = static_cast<std::size_t>((image * grid.points() + point) * grid.taps + t);
      if (grid.indices[i] >= 0 && grid.weights[i] != 0)
        taps[count++] = {grid.indices[i], static_cast<double>(grid.weights[i])};
    }
    return count;
  }
  const StaticPixel at = decode(grid, image, point);
  const double x0 = std::floor(at.x), y0 = std::floor(at.y), dx = at.x - x0, dy = at.y - y0;
  for (int corner = 0; corner < 4; ++corner) {
    const bool right = (corner & 1) != 0, below = corner > 1;
    auto x = static_cast<std::int64_t>(x0) + right, y = static_cast<std::int64_t>(y0) + below;
    const double weight = (right ? dx : 1 - dx) * (below ? dy : 1 - dy);
    if (grid.padding == StaticPadding::kBorder) {
      x = std::clamp<std::int64_t>(x, 0, grid.width - 1);
      y = std::clamp<std::int64_t>(y, 0, grid.height - 1);
    }
    if (x < 0 || x >= grid.width || y < 0 || y >= grid.height || weight == 0) continue;
    taps[count++] = {y * grid.width + x, weight};
  }
  return count;
}

}  // namespace

template <typename T>
void static_sample_reference(const StaticGrid& grid, const StaticSizes& sizes, const T* value,
                             T* out) {
  const std::int64_t channels = sizes.channels, pixels = grid.height * grid.width;
  const std::int64_t points = grid.points();
  for (std::int64_t n = 0; n < sizes.batch; ++n)
    for (std::int64_t p = 0; p < points; ++p) {
      Tap taps[4];
      const int count = taps_of(grid, grid.images == 1 ? 0 : n, p, taps);
      for (std::int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int t = 0; t < count; ++t) {
          const std::int64_t at = sizes.channels_last ? (n * pixels + taps[t].pixel) * channels + c
                                                      : (n * channels + c) * pixels + taps[t].pixel;
          sum += taps[t].weight * static_cast<double>(to_float(value[at]));
        }
        from_float(static_cast<float>(sum),
                   out[sizes.channels_last ? (n * points + p) * channels + c
                                           : (n * channels + c) * points + p]);
      }
    }
}

template void static_sample_reference(const StaticGrid&, const StaticSizes&, const float*, float*);
template void static_sample_reference(const StaticGrid&, const StaticSizes&, const Half*, Half*);
template void static_sample_reference(const StaticGrid&, const StaticSizes&, const BHalf*, BHalf*);

}  // namespace tenonnx
