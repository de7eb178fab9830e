// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_sampling_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenonnx {
namespace {

constexpr double kFarSizes = 10;      // images away
constexpr double kBeyondInt32 = 3e9;  // pixels
constexpr double kTieTolerance = 1e-3;

double unit(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1p-53; }

// The positions along one axis that a case is about.
std::vector<double> positions(SamplingCase made, std::int64_t size) {
  const double n = static_cast<double>(size);
  switch (made) {
    case SamplingCase::kInside:
      // 7/16 of a pixel: in the border, and no tie.
      return {0,
              n - 1,
              std::floor((n - 1) / 2) + 0.25,
              -0.4375,
              n - 1 + 0.4375,
              -0.0625,
              n - 1 + 0.0625,
              std::floor(n / 2),
              std::floor(n / 3) + 0.25,
              n - 1.75};
    case SamplingCase::kTies:
      return {-0.5,
              n - 0.5,
              0.5,
              n - 1.5,
              std::floor(n / 2) - 0.5,
              std::floor(n / 3) + 0.5,
              std::floor(n / 4) + 0.5};
    case SamplingCase::kOutside:
      return {-0.5625, n - 1 + 0.5625, -0.75, n - 0.25, -0.9375, n - 0.0625, -1,   n,
              -1.25,   n + 0.25,       -1.75, n + 0.75, -2.25,   n + 1.25,   -7.3, n + 6.3};
    case SamplingCase::kFar:
      return {-kFarSizes * n - 0.3,
              (kFarSizes + 1) * n + 0.3,
              -1e3 * n - 7.3,
              1e3 * n + 7.3,
              -1e6 - n,
              1e6 + 2 * n,
              -kBeyondInt32,
              kBeyondInt32};
  }
  return {};
}

// How far outside of the middles of the outer pixels, below zero inside.
double outside(double pixel, std::int64_t size) {
  return std::max(-pixel, pixel - static_cast<double>(size - 1));
}

}  // namespace

std::string_view to_string(SamplingCase made) {
  switch (made) {
    case SamplingCase::kInside:
      return "points inside, on corners and border";
    case SamplingCase::kTies:
      return "points half-way between pixels";
    case SamplingCase::kOutside:
      return "points outside";
    case SamplingCase::kFar:
      return "points far outside";
  }
  return "unknown";
}

void PointKinds::count(std::span<const double> pixel, std::span<const std::int64_t> size) {
  ++points;
  bool finite = true, is_centre = true, is_corner = true, is_tie = false;
  double most = -std::numeric_limits<double>::infinity();
  double size_there = 1;
  for (std::size_t a = 0; a < pixel.size(); ++a) {
    const double p = pixel[a], last = static_cast<double>(size[a] - 1);
    finite = finite && std::isfinite(p);
    is_centre = is_centre && std::fabs(p - last / 2) <= 0.5;
    is_corner = is_corner && (std::fabs(p) <= 0.5 || std::fabs(p - last) <= 0.5);
    is_tie = is_tie || std::fabs(p - std::floor(p) - 0.5) < kTieTolerance;
    if (outside(p, size[a]) > most) {
      most = outside(p, size[a]);
      size_there = static_cast<double>(size[a]);
    }
  }
  if (!finite) {
    ++not_finite;
    return;
  }
  centre += is_centre;
  corner += is_corner;
  tie += is_tie;
  if (most > kFarSizes * size_there)
    ++far;
  else if (most >= 1)
    ++outside_more;
  else if (most > 0.5)
    ++outside_less;
  else if (most >= -0.5)
    ++border;
}

std::vector<std::string_view> PointKinds::missing() const {
  std::vector<std::string_view> out;
  const auto see = [&](std::int64_t n, std::string_view name) {
    if (n == 0) out.push_back(name);
  };
  see(centre, "centre");
  see(corner, "corners");
  see(border, "border");
  see(tie, "half-pixel ties");
  see(outside_less, "outside by less than a pixel");
  see(outside_more, "outside by more");
  see(far, "far outside");
  return out;
}

double grid_to_pixel(double grid, std::int64_t size, bool align_corners) {
  const double n = static_cast<double>(size);
  return align_corners ? (grid + 1) / 2 * (n - 1) : ((grid + 1) * n - 1) / 2;
}

double pixel_to_grid(double pixel, std::int64_t size, bool align_corners) {
  const double n = static_cast<double>(size);
  // With one pixel and aligned corners every coordinate is pixel 0.
  if (align_corners) return size == 1 ? pixel : 2 * pixel / (n - 1) - 1;
  return (2 * pixel + 1) / n - 1;
}

float exact_grid(double pixel, std::int64_t size, bool align_corners) {
  const float n = static_cast<float>(size), wanted = static_cast<float>(pixel);
  const auto back = [&](float g) {
    return align_corners ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
  };
  const float nearest = static_cast<float>(pixel_to_grid(pixel, size, align_corners));
  float up = nearest, down = nearest;
  for (int i = 0; i < 8; ++i) {
    if (back(up) == wanted) return up;
    if (back(down) == wanted) return down;
    up = std::nextafter(up, std::numeric_limits<float>::infinity());
    down = std::nextafter(down, -std::numeric_limits<float>::infinity());
  }
  return nearest;
}

std::vector<double> made_points(SamplingCase made, std::span<const std::int64_t> size,
                                std::int64_t count, std::uint64_t seed, double farthest) {
  const std::size_t axes = size.size();
  std::mt19937_64 engine(seed * 1'000'003 + static_cast<std::uint64_t>(made));
  std::vector<std::vector<double>> special(axes);
  for (std::size_t a = 0; a < axes; ++a) special[a] = positions(made, size[a]);
  const std::size_t each = special[0].size();
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(count) * axes);
  // Somewhere inside, in sixteenths between halves: no tie.
  const auto anywhere = [&](std::size_t a) {
    const double whole = std::floor(unit(engine) * static_cast<double>(size[a]));
    const double part = (1 + std::floor(unit(engine) * 7)) / 16;
    return whole + (unit(engine) < 0.5 ? -part : part);
  };
  for (std::int64_t k = 0; k < count; ++k) {
    const auto at = static_cast<std::size_t>(k % kDistinctPoints);
    for (std::size_t a = 0; a < axes; ++a) {
      double p;
      if (at < axes * each) {  // one axis after the other, the others inside
        p = at / each == a ? special[a][at % each] : anywhere(a);
      } else if (at - axes * each < (std::size_t{1} << axes)) {  // the ends: corners
        p = special[a][((at - axes * each) >> a) & 1];
      } else if (at - axes * each == (std::size_t{1} << axes)) {
        p = special[a][2 % each];  // the middle
      } else {
        p = special[a][engine() % each];
      }
      out.push_back(std::clamp(p, -farthest, farthest));
    }
  }
  return out;
}

double grid_rounding(DType dtype, std::int64_t size, bool align_corners) {
  const double pixels = static_cast<double>(align_corners ? size - 1 : size) / 2;  // of 1 of g
  switch (dtype) {
    case DType::kFloat64:
      return pixels * 0x1p-54;
    case DType::kFloat32:  // 24 bits: steps of 2^-24 from 0.5 to 1, half of it
      return pixels * 0x1p-25;
    case DType::kFloat16:
      return pixels * 0x1p-12;
    case DType::kBFloat16:
      return pixels * 0x1p-9;
    case DType::kInt8:
    case DType::kUInt8:
      return pixels / 255;
    case DType::kInt16:
    case DType::kUInt16:
      return pixels / 65535;
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace tenonnx
