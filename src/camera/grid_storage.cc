// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "camera/grid_storage.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "camera/grid_storage_internal.h"

namespace tenonnx {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A point samples something where one of its neighbours with a weight above 0 is inside.
bool samples(double x, std::int64_t size, StaticPadding padding) {
  return padding == StaticPadding::kBorder || (x > -1 && x < static_cast<double>(size));
}

GridPixels only_sampled(const StaticSource& source, GridPixels pixels) {
  for (std::size_t i = 0; i < pixels.x.size(); ++i) {
    if (samples(pixels.x[i], source.width, source.padding) &&
        samples(pixels.y[i], source.height, source.padding))
      continue;
    pixels.x[i] = pixels.y[i] = kNan;
  }
  return pixels;
}

StoredGrid from_encoding(std::string storage, const StaticSource& source,
                         const StaticEncoding& made, TensorMap arrays) {
  GridPixels got;
  const std::int64_t points = made.grid.points();
  for (std::int64_t i = 0; i < source.images * points; ++i) {
    const StaticPixel at = decode(made.grid, i / points, i % points);
    got.x.push_back(at.x);
    got.y.push_back(at.y);
  }
  return measured(std::move(storage), source, only_sampled(source, std::move(got)),
                  std::move(arrays));
}

}  // namespace

GridPixels exact_pixels(const StaticSource& source) {
  GridPixels pixels;
  const std::int64_t count = source.images * source.out_height * source.out_width;
  const auto pixel = [&](float g, std::int64_t size) {
    const auto s = static_cast<double>(size);
    const double x = source.align_corners ? (g + 1.0) / 2 * (s - 1) : ((g + 1.0) * s - 1) / 2;
    if (source.padding == StaticPadding::kZeros) return x;
    return std::isnan(x) ? 0 : std::clamp(x, 0.0, s - 1);
  };
  for (std::int64_t i = 0; i < count; ++i) {
    pixels.x.push_back(pixel(source.grid[2 * i], source.width));
    pixels.y.push_back(pixel(source.grid[2 * i + 1], source.height));
  }
  return only_sampled(source, std::move(pixels));
}

StoredGrid measured(std::string storage, const StaticSource& source, const GridPixels& got,
                    TensorMap arrays) {
  StoredGrid stored;
  stored.storage = std::move(storage);
  const GridPixels want = exact_pixels(source);
  double squares = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < want.x.size(); ++i) {
    if (std::isnan(want.x[i]) != std::isnan(got.x[i])) ++stored.changed;
    if (std::isnan(want.x[i]) || std::isnan(got.x[i])) continue;
    for (const double off : {got.x[i] - want.x[i], got.y[i] - want.y[i]}) {
      stored.max_pixels = std::max(stored.max_pixels, std::abs(off));
      squares += off * off;
    }
    count += 2;
  }
  stored.rms_pixels = count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
  for (const auto& [name, array] : arrays) stored.bytes += static_cast<std::int64_t>(array.bytes());
  stored.arrays = std::move(arrays);
  return stored;
}

StoredGrid store_float32(const StaticSource& source) {
  Tensor grid(DType::kFloat32, {source.images, source.out_height, source.out_width, 2});
  std::copy(source.grid, source.grid + grid.size(), grid.mutable_data<float>());
  return measured("float32", source, exact_pixels(source), {{"grid", grid}});
}

StoredGrid store_int16(const StaticSource& source) {
  const StaticEncoding made = encode_int16(source);
  const StaticGrid& g = made.grid;
  return from_encoding(
      "int16", source, made,
      {{"coordinates",
        Tensor::from(DType::kInt16, {g.images, g.out_height, g.out_width, 2}, g.coordinates)},
       {"step", Tensor::from<float>(DType::kFloat32, {2}, {g.step[0], g.step[1]})},
       {"offset", Tensor::from<float>(DType::kFloat32, {2}, {g.offset[0], g.offset[1]})}});
}

StoredGrid store_blocks(const StaticSource& source) {
  const StaticEncoding made = encode_blocks(source);
  const StaticGrid& g = made.grid;
  constexpr std::int64_t kPoints = StaticGrid::kBlockSide * StaticGrid::kBlockSide;
  return from_encoding(
      "blocks", source, made,
      {{"base", Tensor::from(DType::kFloat32, {g.images, g.blocks(), 4}, g.base)},
       {"delta", Tensor::from(DType::kInt8, {g.images, g.blocks(), kPoints, 2}, g.delta)}});
}

}  // namespace tenonnx
