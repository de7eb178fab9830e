// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/signal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/half.h"
#include "base/status.h"
#include "metrics/elements.h"

namespace tenonnx {
namespace {

// What rounding leaves of a magnitude at least: half a step of bfloat16, the coarsest type, is
// 2^-9.
constexpr double kRounded = 1 - 0x1p-8;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Status check_same(const Tensor& reference, const Tensor& candidate) {
  if (reference.defined() && candidate.defined() && reference.dtype() == candidate.dtype() &&
      reference.shape() == candidate.shape())
    return {};
  return InvalidArgument("cannot compare: the reference is {} {}, the candidate {} {}",
                         to_string(reference.dtype()), to_string(reference.shape()),
                         to_string(candidate.dtype()), to_string(candidate.shape()));
}

// Calls pair(x, y, index) for every element; false where the dtype is not floating.
template <typename Pair>
bool for_each_pair(const Tensor& reference, const Tensor& candidate, Pair&& pair) {
  bool floating = false;
  visit_elements(reference, [&](const auto* r) {
    using T = std::remove_cvref_t<decltype(*r)>;
    if constexpr (is_float_element<T>) {
      floating = true;
      const T* c = candidate.data<T>();
      for (std::int64_t i = 0; i < reference.size(); ++i) pair(to_double(r[i]), to_double(c[i]), i);
    }
  });
  return floating;
}

Status needs_floats(std::string_view figure, const Tensor& tensor) {
  return InvalidArgument("{} of {} {}: needs a floating dtype", figure, to_string(tensor.dtype()),
                         to_string(tensor.shape()));
}

// The position of a value among all values of its type, counted from 0 outwards: equal for +0 and
// -0. Sign and magnitude are stored apart in every IEEE format.
template <typename Int>
std::int64_t position(Int bits) {
  constexpr Int kSign = static_cast<Int>(Int{1} << (sizeof(Int) * 8 - 1));
  const auto magnitude = static_cast<std::int64_t>(bits & static_cast<Int>(~kSign));
  return (bits & kSign) != 0 ? -magnitude : magnitude;
}

std::int64_t position_in(double value, DType step) {
  switch (step) {
    case DType::kFloat16:
      return position(float_to_float16(static_cast<float>(value)));
    case DType::kBFloat16:
      return position(float_to_bfloat16(static_cast<float>(value)));
    case DType::kFloat64:
      return position(std::bit_cast<std::uint64_t>(value));
    default:
      return position(std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  }
}

}  // namespace

std::optional<double> sqnr_db(const TensorError& error) {
  if (!error.relative_l2) return std::nullopt;
  return *error.relative_l2 == 0 ? kInfinity : -20 * std::log10(*error.relative_l2);
}

Result<double> psnr_db(const Tensor& reference, const Tensor& candidate, double peak) {
  TENONNX_RETURN_IF_ERROR(check_same(reference, candidate));
  if (!(peak > 0) || !std::isfinite(peak))
    return InvalidArgument("the peak of a PSNR is the width of the declared range, above 0; got {}",
                           peak);
  double squares = 0;
  std::int64_t count = 0;
  const bool floating = for_each_pair(reference, candidate, [&](double x, double y, std::int64_t) {
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    const double d = (y - x) / peak;
    squares += d * d;
    ++count;
  });
  if (!floating) return needs_floats("PSNR", reference);
  if (count == 0) return std::nan("");
  return squares == 0 ? kInfinity : -10 * std::log10(squares / static_cast<double>(count));
}

Result<std::optional<std::int64_t>> max_ulp(const Tensor& reference, const Tensor& candidate,
                                            DType step) {
  TENONNX_RETURN_IF_ERROR(check_same(reference, candidate));
  std::int64_t largest = -1;
  const bool floating = for_each_pair(reference, candidate, [&](double x, double y, std::int64_t) {
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    if (x == y) {
      largest = std::max<std::int64_t>(largest, 0);
      return;
    }
    // Unsigned: two float64 of opposite signs may be more than 2^63 apart.
    const auto [low, high] = std::minmax({position_in(x, step), position_in(y, step)});
    const std::uint64_t apart = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    largest =
        std::max(largest, static_cast<std::int64_t>(std::min<std::uint64_t>(apart, INT64_MAX)));
  });
  if (!floating) return std::optional<std::int64_t>();
  return std::optional<std::int64_t>(largest);
}

Result<std::int64_t> count_beyond(const Tensor& reference, const Tensor& candidate, double limit) {
  TENONNX_RETURN_IF_ERROR(check_same(reference, candidate));
  std::int64_t beyond = 0;
  const bool floating = for_each_pair(reference, candidate, [&](double x, double y, std::int64_t) {
    if (std::isfinite(x) && std::isfinite(y))
      beyond += std::fabs(y - x) > limit ? 1 : 0;
    else
      beyond += std::isfinite(x) != std::isfinite(y) ? 1 : 0;
  });
  if (floating) return beyond;
  TENONNX_ASSIGN_OR_RETURN(const TensorError error, compare_tensors(reference, candidate));
  return error.differing;
}

Result<Saturation> count_saturated(const Tensor& reference, const Tensor& candidate, double largest,
                                   double ceiling, std::span<const double> masks) {
  TENONNX_RETURN_IF_ERROR(check_same(reference, candidate));
  Saturation out;
  const bool floating =
      for_each_pair(reference, candidate, [&](double x, double y, std::int64_t i) {
        const double magnitude = std::fabs(x);
        if (!(magnitude > largest) || std::isinf(magnitude) ||
            std::binary_search(masks.begin(), masks.end(), magnitude))
          return;
        if (out.beyond++ == 0) out.first_index = i;
        out.max_abs = std::max(out.max_abs, magnitude);
        if (std::fabs(y) <= ceiling && std::fabs(y) < kRounded * magnitude) ++out.saturated;
      });
  if (!floating) return needs_floats("saturation", reference);
  return out;
}

Result<NonFiniteChange> changed_non_finite(const Tensor& reference, const Tensor& candidate,
                                           double largest) {
  TENONNX_RETURN_IF_ERROR(check_same(reference, candidate));
  NonFiniteChange out;
  for_each_pair(reference, candidate, [&](double x, double y, std::int64_t i) {
    if (std::isfinite(x) || x == y || (std::isnan(x) && std::isnan(y))) return;
    if (std::isinf(x) && std::isfinite(y) && std::fabs(y) >= largest &&
        std::signbit(x) == std::signbit(y)) {
      ++out.saturated;
      return;
    }
    if (out.lost++ == 0) out.first_lost_index = i;
  });
  return out;
}

}  // namespace tenonnx
