// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Patterns by k-means: the first is the block with the widest spread, each further one the block
// that the patterns so far fit worst, then Lloyd's steps. The distance is the error in pixels, so
// that a block with a wide spread counts more. No random numbers: the same grid, the same bytes.
#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "camera/grid_storage_internal.h"

namespace tenonnx {
namespace {

constexpr int kSteps = 12;
using Pattern = std::array<std::array<double, kBlockPoints>, 2>;  // -127 to 127

// A sampled block, about its middle and to its own scale.
struct Shape2 {
  Block block;
  std::array<double, 2> base{}, scale{};
  Pattern pattern{};
};

std::vector<Shape2> shapes_of(const std::vector<Block>& blocks, const GridPixels& exact) {
  std::vector<Shape2> shapes;
  for (const Block& block : blocks) {
    if (block.empty()) continue;
    Shape2& shape = shapes.emplace_back();
    shape.block = block;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const auto& v = axis == 0 ? exact.x : exact.y;
      double low = v[block[0].point], high = low;
      for (const BlockPoint& p : block) {
        low = std::min(low, v[p.point]);
        high = std::max(high, v[p.point]);
      }
      shape.base[axis] = (low + high) / 2;
      shape.scale[axis] = std::max((high - low) / 2 / 127, 1e-6);
      for (const BlockPoint& p : block)
        shape.pattern[axis][static_cast<std::size_t>(p.inside)] =
            (v[p.point] - shape.base[axis]) / shape.scale[axis];
    }
  }
  return shapes;
}

double squared_pixels(const Shape2& shape, const Pattern& pattern) {
  double sum = 0;
  for (std::size_t axis = 0; axis < 2; ++axis)
    for (const BlockPoint& p : shape.block) {
      const auto i = static_cast<std::size_t>(p.inside);
      const double off = (shape.pattern[axis][i] - pattern[axis][i]) * shape.scale[axis];
      sum += off * off;
    }
  return sum;
}

std::vector<std::size_t> assign(const std::vector<Shape2>& shapes,
                                const std::vector<Pattern>& patterns) {
  std::vector<std::size_t> index;
  for (const Shape2& shape : shapes) {
    std::size_t best = 0;
    double least = 1e300;
    for (std::size_t k = 0; k < patterns.size(); ++k)
      if (const double d = squared_pixels(shape, patterns[k]); d < least) {
        least = d;
        best = k;
      }
    index.push_back(best);
  }
  return index;
}

void move_to_means(const std::vector<Shape2>& shapes, const std::vector<std::size_t>& index,
                   std::vector<Pattern>& patterns) {
  for (std::size_t k = 0; k < patterns.size(); ++k) {
    Pattern sum{}, weight{};
    for (std::size_t s = 0; s < shapes.size(); ++s) {
      if (index[s] != k) continue;
      for (std::size_t axis = 0; axis < 2; ++axis)
        for (const BlockPoint& p : shapes[s].block) {
          const auto i = static_cast<std::size_t>(p.inside);
          const double w = shapes[s].scale[axis] * shapes[s].scale[axis];
          sum[axis][i] += w * shapes[s].pattern[axis][i];
          weight[axis][i] += w;
        }
    }
    for (std::size_t axis = 0; axis < 2; ++axis)
      for (std::size_t i = 0; i < kBlockPoints; ++i)
        if (weight[axis][i] > 0) patterns[k][axis][i] = sum[axis][i] / weight[axis][i];
  }
}

std::vector<Pattern> cluster(const std::vector<Shape2>& shapes, std::size_t count) {
  std::vector<Pattern> patterns;
  std::vector<double> distance(shapes.size());
  for (std::size_t s = 0; s < shapes.size(); ++s) distance[s] = squared_pixels(shapes[s], {});
  while (patterns.size() < std::min(count, shapes.size())) {
    const auto worst = std::max_element(distance.begin(), distance.end());
    patterns.push_back(shapes[static_cast<std::size_t>(worst - distance.begin())].pattern);
    for (std::size_t s = 0; s < shapes.size(); ++s)
      distance[s] = std::min(distance[s], squared_pixels(shapes[s], patterns.back()));
  }
  for (int step = 0; step < kSteps; ++step)
    move_to_means(shapes, assign(shapes, patterns), patterns);
  for (Pattern& pattern : patterns)
    for (auto& axis : pattern)
      for (double& v : axis) v = std::clamp(std::nearbyint(v), -127.0, 127.0);
  return patterns;
}

// Base and scale of one axis that fit a pattern best, in the sense of least squares.
void refit(Shape2& shape, std::size_t axis, const Pattern& pattern) {
  double n = 0, sp = 0, sv = 0, pp = 0, pv = 0;
  for (const BlockPoint& point : shape.block) {
    const auto i = static_cast<std::size_t>(point.inside);
    const double p = pattern[axis][i];
    const double v = shape.base[axis] + shape.scale[axis] * shape.pattern[axis][i];
    n += 1;
    sp += p;
    sv += v;
    pp += p * p;
    pv += p * v;
  }
  const double det = n * pp - sp * sp;
  const double scale = det > 1e-9 ? (n * pv - sp * sv) / det : 0;
  shape.scale[axis] = half_rounded(scale);
  shape.base[axis] = (sv - shape.scale[axis] * sp) / n;
}

}  // namespace

GridPixels unpack_codebook(const StaticSource& source, const TensorMap& arrays) {
  const std::size_t count =
      static_cast<std::size_t>(source.images * source.out_height * source.out_width);
  GridPixels pixels{std::vector<double>(count, NAN), std::vector<double>(count, NAN)};
  const auto* scales = arrays.at("scale").data<std::uint16_t>();
  const auto* index = arrays.at("index").data<std::uint8_t>();
  const auto* patterns = arrays.at("patterns").data<std::int8_t>();
  std::int64_t live = 0;
  for (const Block& block : blocks_from_states(source, arrays)) {
    if (block.empty()) continue;
    const auto base = base_of(arrays, live);
    const auto* pattern = patterns + index[live] * kBlockPoints * 2;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const auto scale =
          static_cast<double>(float16_to_float(scales[2 * static_cast<std::size_t>(live) + axis]));
      for (const BlockPoint& p : block)
        (axis == 0 ? pixels.x : pixels.y)[p.point] =
            base[axis] + scale * pattern[2 * p.inside + static_cast<std::int64_t>(axis)];
    }
    ++live;
  }
  return pixels;
}

StoredGrid store_codebook(const StaticSource& source, std::int64_t patterns) {
  const GridPixels exact = exact_pixels(source);
  const std::vector<Block> blocks = blocks_of(source, exact);
  std::vector<Shape2> shapes = shapes_of(blocks, exact);
  const std::vector<Pattern> book =
      cluster(shapes, static_cast<std::size_t>(std::clamp<std::int64_t>(patterns, 1, 256)));
  const std::vector<std::size_t> nearest = assign(shapes, book);
  std::vector<std::array<double, 2>> bases;
  std::vector<std::uint16_t> scales;
  std::vector<std::uint8_t> index;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    for (std::size_t axis = 0; axis < 2; ++axis) {
      refit(shapes[s], axis, book[nearest[s]]);
      scales.push_back(float_to_float16(static_cast<float>(shapes[s].scale[axis])));
    }
    bases.push_back(shapes[s].base);
    index.push_back(static_cast<std::uint8_t>(nearest[s]));
  }
  std::vector<std::int8_t> codes;
  for (const Pattern& pattern : book)
    for (std::size_t i = 0; i < kBlockPoints; ++i)
      for (std::size_t axis = 0; axis < 2; ++axis)
        codes.push_back(static_cast<std::int8_t>(pattern[axis][i]));
  TensorMap arrays;
  add_states(source, blocks, arrays);
  add_bases(bases, arrays);
  arrays["scale"] = Tensor::from(DType::kFloat16, {std::ssize(shapes), 2}, scales);
  arrays["index"] = Tensor::from(DType::kUInt8, {std::ssize(shapes)}, index);
  arrays["patterns"] = Tensor::from(DType::kInt8, {std::ssize(book), kBlockPoints, 2}, codes);
  const GridPixels got = unpack_codebook(source, arrays);
  return measured("codebook", source, got, std::move(arrays));
}

StoredGrid store_codebook_within(const StaticSource& source, std::int64_t bytes) {
  StoredGrid one = store_codebook(source, 1);
  const std::int64_t more = (bytes - one.bytes) / (kBlockPoints * 2);
  return more < 1 ? std::move(one) : store_codebook(source, 1 + more);
}

}  // namespace tenonnx
