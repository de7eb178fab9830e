// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/slices.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/status.h"
#include "metrics/elements.h"

namespace tenonnx {
namespace {

struct Strides {
  std::int64_t outer = 1, length = 1, inner = 1;
};

Strides strides_of(const Shape& shape, std::size_t axis) {
  Strides s;
  s.length = shape[axis];
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i < axis) s.outer *= shape[i];
    if (i > axis) s.inner *= shape[i];
  }
  return s;
}

// The largest finite magnitude of each slice; empty for integers.
std::vector<double> magnitudes(const Tensor& tensor, std::size_t axis) {
  const Strides s = strides_of(tensor.shape(), axis);
  std::vector<double> out;
  visit_elements(tensor, [&](const auto* p) {
    if constexpr (is_float_element<std::remove_cvref_t<decltype(*p)>>) {
      out.assign(static_cast<std::size_t>(s.length), 0);
      for (std::int64_t o = 0; o < s.outer; ++o)
        for (std::int64_t k = 0; k < s.length; ++k)
          for (std::int64_t i = 0; i < s.inner; ++i) {
            const double v = std::fabs(to_double(p[(o * s.length + k) * s.inner + i]));
            double& largest = out[static_cast<std::size_t>(k)];
            if (std::isfinite(v)) largest = std::max(largest, v);
          }
    }
  });
  return out;
}

std::vector<SliceGroup> group(const std::vector<double>& magnitudes) {
  std::vector<SliceGroup> groups;
  double smallest = 0;
  for (std::size_t k = 0; k < magnitudes.size(); ++k) {
    const double m = magnitudes[k];
    const auto at = static_cast<std::int64_t>(k);
    const bool joins = !groups.empty() &&
                       (m == 0 || groups.back().magnitude == 0 ||
                        std::max(groups.back().magnitude, m) < kMixedRatio * std::min(smallest, m));
    if (!joins) {
      groups.push_back({at, at + 1, m});
      smallest = m;
      continue;
    }
    groups.back().end = at + 1;
    if (m > 0) smallest = smallest > 0 ? std::min(smallest, m) : m;
    groups.back().magnitude = std::max(groups.back().magnitude, m);
  }
  return groups;
}

double spread(const std::vector<SliceGroup>& groups) {
  double low = 0, high = 0;
  for (const SliceGroup& one : groups) {
    if (one.magnitude == 0) continue;
    low = low == 0 ? one.magnitude : std::min(low, one.magnitude);
    high = std::max(high, one.magnitude);
  }
  return low > 0 ? high / low : 0;
}

}  // namespace

std::optional<MixedTensor> find_mixed(const Tensor& tensor) {
  std::optional<MixedTensor> best;
  double best_spread = kMixedRatio;
  for (std::size_t axis = 0; axis < tensor.shape().size(); ++axis) {
    const std::int64_t length = tensor.shape()[axis];
    if (length < 2 || length > kMostSlices) continue;
    std::vector<SliceGroup> groups = group(magnitudes(tensor, axis));
    if (groups.size() < 2 || groups.size() > kMostGroups || spread(groups) < best_spread) continue;
    best_spread = spread(groups);
    best = MixedTensor{static_cast<int>(axis), std::move(groups)};
  }
  return best;
}

Result<Tensor> slices_of(const Tensor& tensor, int axis, std::int64_t begin, std::int64_t end) {
  if (axis < 0 || axis >= static_cast<int>(tensor.shape().size()) || begin < 0 || begin >= end ||
      end > tensor.shape()[static_cast<std::size_t>(axis)])
    return InvalidArgument("there are no slices [{}, {}) along axis {} of {}", begin, end, axis,
                           to_string(tensor.shape()));
  const Strides s = strides_of(tensor.shape(), static_cast<std::size_t>(axis));
  Shape shape = tensor.shape();
  shape[static_cast<std::size_t>(axis)] = end - begin;
  Tensor out(tensor.dtype(), shape);
  const std::size_t width = static_cast<std::size_t>(s.inner) * size_of(tensor.dtype());
  const std::size_t run = static_cast<std::size_t>(end - begin) * width;
  for (std::int64_t o = 0; o < s.outer && run > 0; ++o)
    std::memcpy(static_cast<char*>(out.mutable_raw()) + static_cast<std::size_t>(o) * run,
                tensor.data<char>() + static_cast<std::size_t>(o * s.length + begin) * width, run);
  return out;
}

}  // namespace tenonnx
