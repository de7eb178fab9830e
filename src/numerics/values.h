// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A tensor's elements as doubles, whatever its dtype.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "metrics/elements.h"

namespace tenonnx {

inline std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(tensor.size()));
  visit_elements(tensor, [&](const auto* data) {
    using T = std::remove_cvref_t<decltype(*data)>;
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      if constexpr (std::is_integral_v<T>)
        out.push_back(static_cast<double>(data[i]));
      else
        out.push_back(to_double(data[i]));
  });
  return out;
}

// The largest finite magnitude; 0 for none.
inline double largest_magnitude(const std::vector<double>& values) {
  double out = 0;
  for (const double v : values)
    if (std::isfinite(v)) out = std::max(out, std::fabs(v));
  return out;
}

// Sum of the squared differences of elements that are finite in both.
inline double squared_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = a[i] - b[i];
    if (std::isfinite(d)) sum += d * d;
  }
  return sum;
}

}  // namespace tenonnx
