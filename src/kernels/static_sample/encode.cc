// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>

#include "kernels/static_sample/static_sample.h"

namespace tenonnx {
namespace {

constexpr std::int64_t kSide = StaticGrid::kBlockSide;

// What is beyond samples nothing (zeros) or the same as the edge (border).
void useful(std::int64_t size, StaticPadding padding, double& low, double& high) {
  const bool zeros = padding == StaticPadding::kZeros;
  low = zeros ? -1.5 : 0;
  high = static_cast<double>(size - 1) + (zeros ? 1.5 : 0);
}

double pixel(float g, std::int64_t size, const StaticSource& source) {
  const auto s = static_cast<double>(size);
  double low, high;
  useful(size, source.padding, low, high);
  const double x = source.align_corners ? (g + 1.0) / 2 * (s - 1) : ((g + 1.0) * s - 1) / 2;
  return std::isnan(x) ? low : std::clamp(x, low, high);
}

StaticGrid begin(const StaticSource& source, StaticFormat format) {
  StaticGrid grid;
  grid.format = format;
  grid.padding = source.padding;
  grid.images = source.images;
  grid.height = source.height;
  grid.width = source.width;
  grid.out_height = source.out_height;
  grid.out_width = source.out_width;
  return grid;
}

StaticPixel exact(const StaticSource& source, std::int64_t i) {
  return {pixel(source.grid[2 * i], source.width, source),
          pixel(source.grid[2 * i + 1], source.height, source)};
}

StaticEncoding finish(const StaticSource& source, StaticGrid grid) {
  StaticEncoding made;
  if (grid.format != StaticFormat::kTaps) {
    const std::int64_t points = grid.points();
    for (std::int64_t i = 0; i < grid.images * points; ++i) {
      const StaticPixel want = exact(source, i), got = decode(grid, i / points, i % points);
      made.error_pixels =
          std::max({made.error_pixels, std::abs(got.x - want.x), std::abs(got.y - want.y)});
    }
  }
  made.bytes = grid.bytes();
  made.grid = std::move(grid);
  return made;
}

}  // namespace

StaticEncoding encode_taps(const StaticSource& source) {
  StaticGrid grid = begin(source, StaticFormat::kTaps);
  const std::int64_t count = grid.images * grid.points();
  for (std::int64_t i = 0; i < count; ++i) {
    const StaticPixel at = exact(source, i);
    const double x0 = std::floor(at.x), y0 = std::floor(at.y), dx = at.x - x0, dy = at.y - y0;
    for (int corner = 0; corner < 4; ++corner) {
      const bool right = (corner & 1) != 0, below = corner > 1;
      const auto x = static_cast<std::int64_t>(x0) + right,
                 y = static_cast<std::int64_t>(y0) + below;
      const auto weight = static_cast<float>((right ? dx : 1 - dx) * (below ? dy : 1 - dy));
      const bool inside = x >= 0 && x < grid.width && y >= 0 && y < grid.height && weight != 0;
      grid.indices.push_back(inside ? static_cast<std::int32_t>(y * grid.width + x) : -1);
      grid.weights.push_back(inside ? weight : 0);
    }
  }
  return finish(source, std::move(grid));
}

StaticEncoding encode_nearest(const StaticSource& source) {
  StaticGrid grid = begin(source, StaticFormat::kTaps);
  grid.taps = 1;
  const std::int64_t count = grid.images * grid.points();
  double error = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const StaticPixel at = exact(source, i);
    const double x = std::nearbyint(at.x), y = std::nearbyint(at.y);
    const bool inside = x >= 0 && x < static_cast<double>(grid.width) && y >= 0 &&
                        y < static_cast<double>(grid.height);
    if (inside) error = std::max({error, std::abs(at.x - x), std::abs(at.y - y)});
    grid.indices.push_back(inside ? static_cast<std::int32_t>(y) *
                                            static_cast<std::int32_t>(grid.width) +
                                        static_cast<std::int32_t>(x)
                                  : -1);
    grid.weights.push_back(inside ? 1 : 0);
  }
  StaticEncoding made = finish(source, std::move(grid));
  made.error_pixels = error;
  return made;
}

StaticEncoding encode_int16(const StaticSource& source) {
  StaticGrid grid = begin(source, StaticFormat::kInt16);
  for (int axis = 0; axis < 2; ++axis) {
    double low, high;
    useful(axis == 0 ? grid.width : grid.height, grid.padding, low, high);
    grid.offset[axis] = static_cast<float>((low + high) / 2);
    grid.step[axis] = std::max(static_cast<float>((high - low) / 2 / 32767), 1e-9F);
  }
  for (std::int64_t i = 0; i < grid.images * grid.points(); ++i) {
    const StaticPixel at = exact(source, i);
    for (int axis = 0; axis < 2; ++axis) {
      const double q = ((axis == 0 ? at.x : at.y) - grid.offset[axis]) / grid.step[axis];
      grid.coordinates.push_back(
          static_cast<std::int16_t>(std::clamp(std::nearbyint(q), -32768.0, 32767.0)));
    }
  }
  return finish(source, std::move(grid));
}

StaticEncoding encode_blocks(const StaticSource& source) {
  StaticGrid grid = begin(source, StaticFormat::kBlocks);
  const std::int64_t across = grid.blocks_across();
  for (std::int64_t b = 0; b < grid.images * grid.blocks(); ++b) {
    const std::int64_t image = b / grid.blocks(), inside = b % grid.blocks();
    const std::int64_t y0 = inside / across * kSide, x0 = inside % across * kSide;
    double at[2][kSide * kSide];
    for (std::int64_t j = 0; j < kSide; ++j)
      for (std::int64_t i = 0; i < kSide; ++i) {
        // Points beyond the edge of the output repeat the last one.
        const std::int64_t y = std::min(y0 + j, grid.out_height - 1);
        const std::int64_t x = std::min(x0 + i, grid.out_width - 1);
        const StaticPixel p = exact(source, image * grid.points() + y * grid.out_width + x);
        at[0][j * kSide + i] = p.x;
        at[1][j * kSide + i] = p.y;
      }
    float base[2], step[2];
    for (int axis = 0; axis < 2; ++axis) {
      const auto [low, high] = std::minmax_element(at[axis], at[axis] + kSide * kSide);
      base[axis] = static_cast<float>((*low + *high) / 2);
      step[axis] = std::max(static_cast<float>((*high - *low) / 2 / 127), 1e-9F);
    }
    grid.base.insert(grid.base.end(), {base[0], base[1], step[0], step[1]});
    for (std::int64_t i = 0; i < kSide * kSide; ++i)
      for (int axis = 0; axis < 2; ++axis) {
        const double q = (at[axis][i] - base[axis]) / step[axis];
        grid.delta.push_back(
            static_cast<std::int8_t>(std::clamp(std::nearbyint(q), -127.0, 127.0)));
      }
  }
  return finish(source, std::move(grid));
}

}  // namespace tenonnx
