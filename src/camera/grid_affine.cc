// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "camera/grid_storage_internal.h"

namespace tenonnx {
namespace {

constexpr double kMiddle = (kBlockSide - 1) / 2.0;
constexpr int kMostBits = 15;

// From the middle of the block.
double column(const BlockPoint& p) {
  const std::int64_t x = p.inside % kBlockSide;
  return static_cast<double>(x) - kMiddle;
}
double row(const BlockPoint& p) {
  const std::int64_t y = p.inside / kBlockSide;
  return static_cast<double>(y) - kMiddle;
}

struct Plane {
  double a = 0, b = 0, c = 0;
  double at(const BlockPoint& p) const { return a + b * column(p) + c * row(p); }
};

double residual_range(const Block& block, const std::vector<double>& v, const Plane& plane,
                      double& middle) {
  double low = 1e300, high = -1e300;
  for (const BlockPoint& p : block) {
    low = std::min(low, v[p.point] - plane.at(p));
    high = std::max(high, v[p.point] - plane.at(p));
  }
  middle = (low + high) / 2;
  return high - low;
}

// Least squares, then moved so that the largest deviations up and down are equal. The slopes are
// those that float16 stores. A block whose points do not span a plane gets the slopes 0.
Plane fit(const Block& block, const std::vector<double>& v) {
  double n = 0, sx = 0, sy = 0, sv = 0;
  for (const BlockPoint& p : block) {
    n += 1;
    sx += column(p);
    sy += row(p);
    sv += v[p.point];
  }
  double xx = 0, xy = 0, yy = 0, xv = 0, yv = 0;
  for (const BlockPoint& p : block) {
    const double x = column(p) - sx / n, y = row(p) - sy / n, d = v[p.point] - sv / n;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    xv += x * d;
    yv += y * d;
  }
  Plane plane;
  if (const double det = xx * yy - xy * xy; det > 1e-9) {
    plane.b = half_rounded((xv * yy - yv * xy) / det);
    plane.c = half_rounded((yv * xx - xv * xy) / det);
  }
  plane.a = sv / n - plane.b * sx / n - plane.c * sy / n;
  double middle = 0;
  residual_range(block, v, plane, middle);
  plane.a += middle;
  return plane;
}

class Bits {
 public:
  void put(std::uint32_t code, int bits) {
    for (int i = 0; i < bits; ++i, ++used_) {
      if (used_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() |= static_cast<std::uint8_t>((code >> i & 1U) << (used_ % 8));
    }
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t used_ = 0;
};

std::uint32_t take(const std::uint8_t* bytes, std::size_t& at, int bits) {
  std::uint32_t code = 0;
  for (int i = 0; i < bits; ++i, ++at)
    code |= static_cast<std::uint32_t>(bytes[at / 8] >> (at % 8) & 1U) << i;
  return code;
}

double centre(int bits) { return ((1 << bits) - 1) / 2.0; }

struct Planes {
  GridPixels exact;
  std::vector<Block> blocks, live;
  std::vector<std::array<Plane, 2>> planes;  // of the live ones
  TensorMap arrays;                          // all but bits, residual and step
};

Planes planes_of(const StaticSource& source) {
  Planes made;
  made.exact = exact_pixels(source);
  made.blocks = blocks_of(source, made.exact);
  add_states(source, made.blocks, made.arrays);
  std::vector<std::array<double, 2>> bases;
  std::vector<std::uint16_t> slopes;
  for (const Block& block : made.blocks) {
    if (block.empty()) continue;
    made.live.push_back(block);
    made.planes.push_back({fit(block, made.exact.x), fit(block, made.exact.y)});
    bases.push_back({made.planes.back()[0].a, made.planes.back()[1].a});
    for (const Plane& plane : made.planes.back())
      for (const double slope : {plane.b, plane.c})
        slopes.push_back(float_to_float16(static_cast<float>(slope)));
  }
  const auto stored = add_bases(bases, made.arrays);
  for (std::size_t i = 0; i < stored.size(); ++i)
    for (std::size_t axis = 0; axis < 2; ++axis) made.planes[i][axis].a = stored[i][axis];
  made.arrays["slope"] = Tensor::from(DType::kFloat16, {std::ssize(bases), 4}, slopes);
  return made;
}

TensorMap with_residuals(const Planes& planes, double tolerance) {
  TensorMap arrays = planes.arrays;
  const auto step = static_cast<float>(2 * tolerance);
  const auto wide = static_cast<double>(step);
  std::vector<std::uint8_t> sizes;
  Bits stream;
  for (std::size_t i = 0; i < planes.live.size(); ++i) {
    int used[2] = {0, 0};
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const auto& exact = axis == 0 ? planes.exact.x : planes.exact.y;
      const Plane& plane = planes.planes[i][axis];
      double farthest = 0;
      for (const BlockPoint& p : planes.live[i])
        farthest = std::max(farthest, std::abs(exact[p.point] - plane.at(p)));
      // 2^bits codes, a step apart and half a step around each, reach 2^bits * step / 2.
      while (used[axis] < kMostBits && farthest > (1 << used[axis]) * wide / 2) ++used[axis];
      for (const BlockPoint& p : planes.live[i]) {
        const double code =
            std::nearbyint((exact[p.point] - plane.at(p)) / wide + centre(used[axis]));
        stream.put(static_cast<std::uint32_t>(
                       std::clamp(code, 0.0, static_cast<double>((1 << used[axis]) - 1))),
                   used[axis]);
      }
    }
    sizes.push_back(static_cast<std::uint8_t>(used[0] + 16 * used[1]));
  }
  arrays["bits"] = Tensor::from(DType::kUInt8, {std::ssize(sizes)}, sizes);
  arrays["residual"] = Tensor::from(DType::kUInt8, {std::ssize(stream.bytes())}, stream.bytes());
  arrays["step"] = Tensor::from<float>(DType::kFloat32, {1}, {step});
  return arrays;
}

std::int64_t bytes_of(const TensorMap& arrays) {
  std::size_t bytes = 0;
  for (const auto& [name, array] : arrays) bytes += array.bytes();
  return static_cast<std::int64_t>(bytes);
}

StoredGrid stored(const StaticSource& source, TensorMap arrays) {
  const GridPixels got = unpack_affine(source, arrays);
  return measured("affine", source, got, std::move(arrays));
}

}  // namespace

GridPixels unpack_affine(const StaticSource& source, const TensorMap& arrays) {
  const std::size_t count =
      static_cast<std::size_t>(source.images * source.out_height * source.out_width);
  GridPixels pixels{std::vector<double>(count, NAN), std::vector<double>(count, NAN)};
  const auto* slopes = arrays.at("slope").data<std::uint16_t>();
  const auto* sizes = arrays.at("bits").data<std::uint8_t>();
  const auto* stream = arrays.at("residual").data<std::uint8_t>();
  const auto step = static_cast<double>(arrays.at("step").data<float>()[0]);
  std::int64_t live = 0;
  std::size_t at = 0;
  for (const Block& block : blocks_from_states(source, arrays)) {
    if (block.empty()) continue;
    const auto base = base_of(arrays, live);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const auto slope = [&](std::size_t i) {
        return static_cast<double>(
            float16_to_float(slopes[4 * static_cast<std::size_t>(live) + 2 * axis + i]));
      };
      const Plane plane{base[axis], slope(0), slope(1)};
      const int bits = axis == 0 ? sizes[live] % 16 : sizes[live] / 16;
      for (const BlockPoint& p : block)
        (axis == 0 ? pixels.x : pixels.y)[p.point] =
            plane.at(p) + (take(stream, at, bits) - centre(bits)) * step;
    }
    ++live;
  }
  return pixels;
}

StoredGrid store_affine(const StaticSource& source, double tolerance) {
  return stored(source, with_residuals(planes_of(source), tolerance));
}

StoredGrid store_affine_within(const StaticSource& source, std::int64_t bytes) {
  const Planes planes = planes_of(source);
  double low = 1e-4, high = 64;
  TensorMap best = with_residuals(planes, low);
  if (bytes_of(best) <= bytes) return stored(source, std::move(best));
  best = with_residuals(planes, high);
  // Fewer bytes with a larger tolerance; to 1 % of it.
  while (high / low > 1.01 && bytes_of(best) <= bytes) {
    const double middle = std::sqrt(low * high);
    TensorMap tried = with_residuals(planes, middle);
    if (bytes_of(tried) <= bytes) {
      high = middle;
      best = std::move(tried);
    } else {
      low = middle;
    }
  }
  return stored(source, std::move(best));
}

}  // namespace tenonnx
