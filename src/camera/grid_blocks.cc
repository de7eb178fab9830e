// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "camera/grid_storage_internal.h"

namespace tenonnx {
namespace {

// Of all images; calls visit(block, inside, point) for every point.
template <typename Visit>
std::size_t each_point(const StaticSource& source, Visit visit) {
  const std::int64_t across = (source.out_width + kBlockSide - 1) / kBlockSide;
  const std::int64_t down = (source.out_height + kBlockSide - 1) / kBlockSide;
  for (std::int64_t n = 0; n < source.images; ++n)
    for (std::int64_t y = 0; y < source.out_height; ++y)
      for (std::int64_t x = 0; x < source.out_width; ++x)
        visit(static_cast<std::size_t>((n * down + y / kBlockSide) * across + x / kBlockSide),
              y % kBlockSide * kBlockSide + x % kBlockSide,
              static_cast<std::size_t>((n * source.out_height + y) * source.out_width + x));
  return static_cast<std::size_t>(source.images * across * down);
}

std::vector<std::int64_t> sizes_of_blocks(const StaticSource& source) {
  std::vector<std::int64_t> sizes;
  const auto count = [&](std::size_t block, std::int64_t, std::size_t) {
    if (sizes.size() <= block) sizes.resize(block + 1);
    ++sizes[block];
  };
  sizes.resize(each_point(source, count));
  return sizes;
}

}  // namespace

std::vector<Block> blocks_of(const StaticSource& source, const GridPixels& pixels) {
  std::vector<Block> blocks(sizes_of_blocks(source).size());
  each_point(source, [&](std::size_t block, std::int64_t inside, std::size_t point) {
    if (!std::isnan(pixels.x[point])) blocks[block].push_back({inside, point});
  });
  return blocks;
}

void add_states(const StaticSource& source, const std::vector<Block>& blocks, TensorMap& arrays) {
  const std::vector<std::int64_t> sizes = sizes_of_blocks(source);
  std::vector<std::uint8_t> states, masks;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const bool all = std::ssize(blocks[b]) == sizes[b];
    states.push_back(blocks[b].empty() ? 0 : all ? 1 : 2);
    if (states.back() != 2) continue;
    std::array<std::uint8_t, kMaskBytes> mask{};
    for (const BlockPoint& p : blocks[b])
      mask[static_cast<std::size_t>(p.inside / 8)] |=
          static_cast<std::uint8_t>(1U << (p.inside % 8));
    masks.insert(masks.end(), mask.begin(), mask.end());
  }
  arrays["state"] = Tensor::from(DType::kUInt8, {std::ssize(states)}, states);
  arrays["masks"] =
      Tensor::from(DType::kUInt8, {std::ssize(masks) / kMaskBytes, kMaskBytes}, masks);
}

std::vector<Block> blocks_from_states(const StaticSource& source, const TensorMap& arrays) {
  const auto* states = arrays.at("state").data<std::uint8_t>();
  const auto* masks = arrays.at("masks").data<std::uint8_t>();
  std::vector<Block> blocks(sizes_of_blocks(source).size());
  std::vector<const std::uint8_t*> mask_of(blocks.size(), nullptr);
  for (std::size_t b = 0; b < blocks.size(); ++b)
    if (states[b] == 2) {
      mask_of[b] = masks;
      masks += kMaskBytes;
    }
  each_point(source, [&](std::size_t block, std::int64_t inside, std::size_t point) {
    const bool sampled =
        states[block] == 1 ||
        (states[block] == 2 && (mask_of[block][inside / 8] >> (inside % 8) & 1) != 0);
    if (sampled) blocks[block].push_back({inside, point});
  });
  return blocks;
}

std::vector<std::array<double, 2>> add_bases(const std::vector<std::array<double, 2>>& bases,
                                             TensorMap& arrays) {
  std::vector<float> range(4);
  std::vector<std::uint16_t> codes;
  for (std::size_t axis = 0; axis < 2 && !bases.empty(); ++axis) {
    const auto [low, high] =
        std::minmax_element(bases.begin(), bases.end(),
                            [&](const auto& a, const auto& b) { return a[axis] < b[axis]; });
    range[axis] = static_cast<float>((*low)[axis]);
    range[2 + axis] = std::max(static_cast<float>(((*high)[axis] - (*low)[axis]) / 65535), 1e-9F);
  }
  for (const auto& base : bases)
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const double q =
          (base[axis] - static_cast<double>(range[axis])) / static_cast<double>(range[2 + axis]);
      codes.push_back(static_cast<std::uint16_t>(std::clamp(std::nearbyint(q), 0.0, 65535.0)));
    }
  arrays["range"] = Tensor::from(DType::kFloat32, {4}, range);
  arrays["base"] = Tensor::from(DType::kUInt16, {std::ssize(bases), 2}, codes);
  std::vector<std::array<double, 2>> stored;
  for (std::int64_t i = 0; i < std::ssize(bases); ++i) stored.push_back(base_of(arrays, i));
  return stored;
}

std::array<double, 2> base_of(const TensorMap& arrays, std::int64_t live) {
  const auto* range = arrays.at("range").data<float>();
  const auto* codes = arrays.at("base").data<std::uint16_t>();
  std::array<double, 2> base{};
  for (std::size_t axis = 0; axis < 2; ++axis)
    base[axis] =
        static_cast<double>(range[axis]) +
        static_cast<double>(range[2 + axis]) * codes[2 * static_cast<std::size_t>(live) + axis];
  return base;
}

double half_rounded(double value) {
  return static_cast<double>(float16_to_float(float_to_float16(static_cast<float>(value))));
}

}  // namespace tenonnx
