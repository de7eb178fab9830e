// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "camera/grid_storage_internal.h"

namespace tenonnx {
namespace {

constexpr double kMiddle = (kBlockSide - 1) / 2.0;
constexpr int kMostBits = 15;
constexpr double kLeastStep = 2e-4;  // half of it is an error that no sampling notices
constexpr double kBetweenSteps = 1.002;

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

// What the plane of a block and axis leaves over, of its points in order.
struct Residuals {
  std::vector<double> values;
  double farthest = 0;  // from 0
};

struct Planes {
  std::vector<std::array<Residuals, 2>> residuals;  // of the live blocks
  TensorMap arrays;                                 // all but bits, residual and step
  double farthest() const {
    double most = 0;
    for (const auto& axes : residuals) most = std::max({most, axes[0].farthest, axes[1].farthest});
    return most;
  }
};

Planes planes_of(const StaticSource& source) {
  Planes made;
  const GridPixels exact = exact_pixels(source);
  const std::vector<Block> blocks = blocks_of(source, exact);
  add_states(source, blocks, made.arrays);
  std::vector<std::array<Plane, 2>> planes;
  std::vector<std::array<double, 2>> bases;
  std::vector<std::uint16_t> slopes;
  for (const Block& block : blocks) {
    if (block.empty()) continue;
    planes.push_back({fit(block, exact.x), fit(block, exact.y)});
    bases.push_back({planes.back()[0].a, planes.back()[1].a});
    for (const Plane& plane : planes.back())
      for (const double slope : {plane.b, plane.c})
        slopes.push_back(float_to_float16(static_cast<float>(slope)));
  }
  const auto stored = add_bases(bases, made.arrays);
  made.arrays["slope"] = Tensor::from(DType::kFloat16, {std::ssize(bases), 4}, slopes);
  for (const Block& block : blocks) {
    if (block.empty()) continue;
    const std::size_t live = made.residuals.size();
    auto& axes = made.residuals.emplace_back();
    for (std::size_t axis = 0; axis < 2; ++axis) {
      planes[live][axis].a = stored[live][axis];
      for (const BlockPoint& p : block) {
        const double left = (axis == 0 ? exact.x : exact.y)[p.point] - planes[live][axis].at(p);
        axes[axis].values.push_back(left);
        axes[axis].farthest = std::max(axes[axis].farthest, std::abs(left));
      }
    }
  }
  return made;
}

// 2^bits codes, a step apart and half a step around each, reach 2^bits * step / 2.
int bits_for(double farthest, double step) {
  int bits = 0;
  while (bits < kMostBits && farthest > (1 << bits) * step / 2) ++bits;
  return bits;
}

double code_of(double residual, double step, int bits) {
  return std::clamp(std::nearbyint(residual / step + centre(bits)), 0.0,
                    static_cast<double>((1 << bits) - 1));
}

float at_least(double value) {
  const auto rounded = static_cast<float>(value);
  return static_cast<double>(rounded) < value
             ? std::nextafter(rounded, std::numeric_limits<float>::infinity())
             : rounded;
}

// At a smaller step the widest code would not reach the farthest residual.
float least_step(const Planes& planes) {
  return at_least(std::max(kLeastStep, std::ldexp(planes.farthest(), 1 - kMostBits)));
}

TensorMap with_residuals(const Planes& planes, float step) {
  TensorMap arrays = planes.arrays;
  const auto wide = static_cast<double>(step);
  std::vector<std::uint8_t> sizes;
  Bits stream;
  for (const auto& axes : planes.residuals) {
    int used[2] = {0, 0};
    for (std::size_t axis = 0; axis < 2; ++axis) {
      used[axis] = bits_for(axes[axis].farthest, wide);
      for (const double left : axes[axis].values)
        stream.put(static_cast<std::uint32_t>(code_of(left, wide, used[axis])), used[axis]);
    }
    sizes.push_back(static_cast<std::uint8_t>(used[0] + 16 * used[1]));
  }
  arrays["bits"] = Tensor::from(DType::kUInt8, {std::ssize(sizes)}, sizes);
  arrays["residual"] = Tensor::from(DType::kUInt8, {std::ssize(stream.bytes())}, stream.bytes());
  arrays["step"] = Tensor::from<float>(DType::kFloat32, {1}, {step});
  return arrays;
}

// Of with_residuals(). It never rises with the step.
std::int64_t bytes_at(const Planes& planes, float step) {
  std::int64_t bytes = std::ssize(planes.residuals) + std::int64_t{sizeof step}, bits = 0;
  for (const auto& [name, array] : planes.arrays) bytes += static_cast<std::int64_t>(array.bytes());
  for (const auto& axes : planes.residuals)
    for (const Residuals& axis : axes)
      bits += std::ssize(axis.values) * bits_for(axis.farthest, static_cast<double>(step));
  return bytes + (bits + 7) / 8;
}

// Stops where it has found `enough`. The widest first: their errors fill the half step.
double largest_error(const std::vector<const Residuals*>& widest_first, float step, double enough) {
  const auto wide = static_cast<double>(step);
  double most = 0;
  for (const Residuals* axis : widest_first) {
    const int bits = bits_for(axis->farthest, wide);
    for (const double left : axis->values) {
      most = std::max(most, std::abs(left - (code_of(left, wide, bits) - centre(bits)) * wide));
      if (most >= enough) return most;
    }
  }
  return most;
}

// From the least, at which nothing is clipped, to one that needs no residual: the same whatever the
// budget, so that a larger one only adds steps to choose from.
std::vector<float> steps_of(const Planes& planes) {
  const float least = least_step(planes);
  const float most = std::max(least, at_least(2 * planes.farthest()));
  std::vector<float> steps;
  for (auto step = static_cast<double>(least); step < static_cast<double>(most);
       step *= kBetweenSteps)
    steps.push_back(static_cast<float>(step));
  steps.push_back(most);
  return steps;
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
  const Planes planes = planes_of(source);
  const float step = std::max(static_cast<float>(2 * tolerance), least_step(planes));
  return stored(source, with_residuals(planes, step));
}

StoredGrid store_affine_within(const StaticSource& source, std::int64_t bytes) {
  const Planes planes = planes_of(source);
  const std::vector<float> steps = steps_of(planes);
  auto best = std::partition_point(steps.begin(), steps.end() - 1,
                                   [&](float step) { return bytes_at(planes, step) > bytes; });
  std::vector<const Residuals*> widest_first;
  for (const auto& axes : planes.residuals)
    for (const Residuals& axis : axes) widest_first.push_back(&axis);
  std::sort(widest_first.begin(), widest_first.end(),
            [](const auto* a, const auto* b) { return a->farthest > b->farthest; });
  // Errors are at most half of the step, and by chance less at a larger one.
  double least = std::numeric_limits<double>::infinity();
  for (auto tried = best; tried != steps.end(); ++tried)
    if (const double error = largest_error(widest_first, *tried, least); error < least) {
      least = error;
      best = tried;
    }
  return stored(source, with_residuals(planes, *best));
}

}  // namespace tenonnx
