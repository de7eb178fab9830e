// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>

#include "kernels/static_sample/static_sample.h"

namespace tenonnx {
namespace {

constexpr double kFarthest = 1 << 22;  // pixels: float32 keeps a quarter of one there
constexpr std::int64_t kSide = StaticGrid::kBlockSide;

template <typename V>
std::string wrong_length(const char* name, const V& values, std::int64_t needed) {
  if (static_cast<std::int64_t>(values.size()) == needed) return {};
  return std::string(name) + " has " + std::to_string(values.size()) + " elements, " +
         std::to_string(needed) + " are needed";
}

bool near_enough(float base, float step, double most) {
  return std::abs(static_cast<double>(base)) + most * std::abs(static_cast<double>(step)) <=
         kFarthest;  // false for NaN
}

}  // namespace

std::int64_t StaticGrid::bytes() const {
  const std::size_t total =
      indices.size() * sizeof(indices[0]) + weights.size() * sizeof(weights[0]) +
      coordinates.size() * sizeof(coordinates[0]) + base.size() * sizeof(base[0]) + delta.size();
  return static_cast<std::int64_t>(total) + (format == StaticFormat::kInt16 ? 16 : 0);
}

std::string StaticGrid::check() const {
  constexpr std::int64_t kMost = 1 << 22;
  for (const auto& [name, size] : {std::pair{"height", height}, {"width", width}})
    if (size < 1 || size > kMost)
      return std::string("the ") + name + " of the values is " + std::to_string(size) +
             ", 1 to 2^22 are possible";
  for (const auto& [name, size] : {std::pair{"height", out_height}, {"width", out_width}})
    if (size < 0 || size > std::int64_t{1} << 24)
      return std::string("the ") + name + " of the output is " + std::to_string(size) +
             ", 0 to 2^24 are possible";
  if (height * width >= std::int64_t{1} << 31) return "an image has more than 2^31 pixels";
  if (images < 1) return "there is no image's grid";
  if (out_height * out_width > (std::int64_t{1} << 40) / images)
    return "there are more than 2^40 points";
  std::string wrong;
  switch (format) {
    case StaticFormat::kTaps: {
      if (taps != 1 && taps != 4)
        return "a point has " + std::to_string(taps) + " taps, 1 or 4 are possible";
      const std::int64_t count = images * points() * taps;
      if (wrong = wrong_length("indices", indices, count); !wrong.empty()) return wrong;
      if (wrong = wrong_length("weights", weights, count); !wrong.empty()) return wrong;
      for (std::size_t i = 0; i < indices.size(); ++i)
        if (indices[i] < -1 || indices[i] >= height * width)
          return "indices[" + std::to_string(i) + "] is " + std::to_string(indices[i]) +
                 ", -1 to " + std::to_string(height * width - 1) + " are possible";
      return {};
    }
    case StaticFormat::kInt16:
      for (int axis = 0; axis < 2; ++axis)
        if (!near_enough(offset[axis], step[axis], 32768))
          return "step and offset reach beyond 2^22 pixels or are not finite";
      return wrong_length("coordinates", coordinates, images * points() * 2);
    case StaticFormat::kBlocks:
      if (wrong = wrong_length("base", base, images * blocks() * 4); !wrong.empty()) return wrong;
      for (std::size_t i = 0; i + 3 < base.size(); i += 4)
        if (!near_enough(base[i], base[i + 2], 128) || !near_enough(base[i + 1], base[i + 3], 128))
          return "the base of block " + std::to_string(i / 4) +
                 " reaches beyond 2^22 pixels or is not finite";
      return wrong_length("delta", delta, images * blocks() * kSide * kSide * 2);
  }
  return "the format is unknown";
}

StaticPixel decode(const StaticGrid& grid, std::int64_t image, std::int64_t point) {
  double at[2];
  if (grid.format == StaticFormat::kInt16) {
    for (int axis = 0; axis < 2; ++axis)
      at[axis] =
          static_cast<double>(grid.offset[axis]) +
          static_cast<double>(grid.step[axis]) * grid.coordinates[static_cast<std::size_t>(
                                                     2 * (image * grid.points() + point) + axis)];
    return {at[0], at[1]};
  }
  const std::int64_t y = point / grid.out_width, x = point % grid.out_width;
  const std::int64_t block = image * grid.blocks() + y / kSide * grid.blocks_across() + x / kSide;
  const std::int64_t inside = y % kSide * kSide + x % kSide;
  for (int axis = 0; axis < 2; ++axis)
    at[axis] =
        static_cast<double>(grid.base[static_cast<std::size_t>(4 * block + axis)]) +
        static_cast<double>(grid.base[static_cast<std::size_t>(4 * block + 2 + axis)]) *
            grid.delta[static_cast<std::size_t>(2 * (block * kSide * kSide + inside) + axis)];
  return {at[0], at[1]};
}

}  // namespace tenonnx
