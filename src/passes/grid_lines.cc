// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/grid_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenonnx {
namespace {

bool is_whole(double v, double tolerance) { return std::abs(v - std::nearbyint(v)) <= tolerance; }

// What a Resize gives at output j.
double sampled_at(const ResizeAxis& axis, ResizeRule rule, std::int64_t j) {
  const auto begin = static_cast<double>(axis.begin), in = static_cast<double>(axis.in),
             out = static_cast<double>(axis.out);
  const auto at = static_cast<double>(j + axis.skip);
  if (axis.identity()) return begin + at;
  if (rule == ResizeRule::kAlignCorners)
    return begin + (axis.out == 1 ? 0 : at * (in - 1) / (out - 1));
  return begin + std::clamp((at + 0.5) * in / out - 0.5, 0.0, in - 1);
}

bool samples(const ResizeAxis& axis, ResizeRule rule, const std::vector<double>& at,
             std::int64_t size, double tolerance) {
  for (std::int64_t j = 0; j < std::ssize(at); ++j) {
    const double wanted =
        std::clamp(at[static_cast<std::size_t>(j)], 0.0, static_cast<double>(size - 1));
    if (!(std::abs(sampled_at(axis, rule, j) - wanted) <= tolerance)) return false;
  }
  return true;
}

}  // namespace

double line_tolerance(std::int64_t size) { return static_cast<double>(size) * 0x1p-20; }

std::string grid_lines(const GridSampleNode& site, const Tensor& grid, std::int64_t image,
                       GridLines& lines) {
  const std::int64_t rows = grid.shape()[1], columns = grid.shape()[2];
  const float* g = grid.data<float>() + image * rows * columns * 2;
  lines = {};
  for (std::int64_t j = 0; j < columns; ++j) lines.x.push_back(g[2 * j]);
  for (std::int64_t i = 0; i < rows; ++i) lines.y.push_back(g[2 * i * columns + 1]);
  // Of two coordinates that both are no number nothing is sampled.
  const auto differ = [](float a, float b, std::int64_t size) {
    if (a == b || (std::isnan(a) && std::isnan(b))) return false;
    return !(std::abs(static_cast<double>(a) - static_cast<double>(b)) / 2 *
                 static_cast<double>(size) <=
             line_tolerance(size));
  };
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const float* at = g + 2 * (i * columns + j);
      if (differ(at[0], lines.x[static_cast<std::size_t>(j)], site.width))
        return fmt::format("its grid is not separable: x of column {} changes from row 0 to row {}",
                           j, i);
      if (differ(at[1], lines.y[static_cast<std::size_t>(i)], site.height))
        return fmt::format(
            "its grid is not separable: y of row {} changes from column 0 to column "
            "{}",
            i, j);
    }
  return {};
}

std::optional<ResizeAxis> find_resize(const std::vector<double>& at, std::int64_t size,
                                      ResizeRule rule) {
  const std::int64_t count = std::ssize(at);
  const double tolerance = line_tolerance(size);
  // The step from output to output, between two that are not clamped.
  const auto free = [&](double x) { return x >= 0 && x <= static_cast<double>(size - 1); };
  const auto first = std::find_if(at.begin(), at.end(), free);
  const auto last = std::find_if(at.rbegin(), at.rend(), free);
  if (first == at.end()) return std::nullopt;
  const auto from = first - at.begin(), to = count - 1 - (last - at.rbegin());
  double step = 1;
  if (to > from)
    step = (at[static_cast<std::size_t>(to)] - *first) / static_cast<double>(to - from);
  if (!(step > 0)) return std::nullopt;
  const double start = *first - static_cast<double>(from) * step;  // of output 0
  // Where its first cell begins, by this rule; output `skip` is there.
  const double edge = rule == ResizeRule::kHalfPixel ? start - step / 2 + 0.5 : start;
  const std::int64_t off = rule == ResizeRule::kHalfPixel ? 0 : 1;
  constexpr std::int64_t kMost = 1 << 14;
  const auto whole_image = static_cast<std::int64_t>(static_cast<double>(size) / step) + 2;
  for (std::int64_t out = count; out <= std::min(std::max(whole_image, count), kMost); ++out) {
    const double pixels = step * static_cast<double>(out - off);
    if (!is_whole(pixels, tolerance)) continue;
    const auto in = static_cast<std::int64_t>(std::nearbyint(pixels)) + off;
    if (in < 1 || in > size) continue;
    for (std::int64_t skip = 0; skip <= out - count; ++skip) {
      const double begin = edge - static_cast<double>(skip) * step;
      if (begin < -0.5) break;
      if (!is_whole(begin, 2 * tolerance)) continue;
      const ResizeAxis axis = {static_cast<std::int64_t>(std::nearbyint(begin)), in, out, skip};
      if (axis.begin < 0 || axis.begin + in > size) continue;
      if (samples(axis, rule, at, size, 2 * tolerance)) return axis;
    }
  }
  return std::nullopt;
}

}  // namespace tenonnx
