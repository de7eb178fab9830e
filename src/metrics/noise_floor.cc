// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/noise_floor.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "base/status.h"
#include "metrics/elements.h"
#include "metrics/tensor_error.h"

namespace tenonnx {

Result<NoiseFloor> storage_noise_floor(const Tensor& y, DType storage, std::string origin) {
  if (storage != DType::kFloat16 && storage != DType::kBFloat16) {
    return InvalidArgument("no storage noise floor for {}: only float16 and bfloat16 are known",
                           to_string(storage));
  }
  NoiseFloor floor;
  floor.origin = std::move(origin);
  bool floating = false;
  double squares = 0, total = 0;
  visit_elements(y, [&](const auto* p) {
    if constexpr (is_float_element<std::remove_cvref_t<decltype(*p)>>) {
      floating = true;
      for (std::int64_t i = 0, n = y.size(); i < n; ++i) {
        const double value = to_double(p[i]);
        if (!std::isfinite(value)) continue;
        const double kept = stored(value, storage);
        if (!std::isfinite(kept)) {
          if (floor.overflowed++ == 0) floor.first_overflowed_index = i;
          continue;
        }
        const double d = std::fabs(kept - value);
        floor.max_abs = std::max(floor.max_abs, d);
        squares += d * d;
        total += value * value;
      }
    }
  });
  if (!floating) {
    return InvalidArgument("storage noise floor of {} {}: needs a floating dtype",
                           to_string(y.dtype()), to_string(y.shape()));
  }
  // total is 0 where every value is 0, or a float64 so small that its square vanishes; both store
  // as 0 and have no relative error worth a limit.
  floor.relative_l2 = total > 0 ? std::sqrt(squares / total) : 0;
  return floor;
}

Result<NoiseFloor> measured_noise_floor(const Tensor& a, const Tensor& b, std::string origin) {
  TENONNX_ASSIGN_OR_RETURN(auto error, compare_tensors(a, b));
  return NoiseFloor{error.max_abs, error.relative_l2.value_or(0), std::move(origin), error.broken,
                    error.first_broken_index};
}

NoiseFloor join_worst(const NoiseFloor& a, const NoiseFloor& b) {
  NoiseFloor worst = a;
  worst.max_abs = std::max(a.max_abs, b.max_abs);
  worst.relative_l2 = std::max(a.relative_l2, b.relative_l2);
  worst.overflowed += b.overflowed;
  if (a.first_overflowed_index < 0) worst.first_overflowed_index = b.first_overflowed_index;
  return worst;
}

Limit limit_from_floor(const NoiseFloor& floor, FloorFigure figure, double factor) {
  const bool absolute = figure == FloorFigure::kMaxAbs;
  const double value = absolute ? floor.max_abs : floor.relative_l2;
  // A floor of Inf (one of the two computations was all zero) would pass everything.
  return {std::isfinite(value) ? factor * value : std::nan(""),
          fmt::format("{:g} x the noise floor {:.3g} ({}) of {}", factor, value,
                      absolute ? "max abs" : "relative L2", floor.origin)};
}

}  // namespace tenonnx
