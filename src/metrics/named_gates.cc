// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/named_gates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "base/status.h"
#include "base/wording.h"
#include "metrics/elements.h"
#include "metrics/signal.h"
#include "metrics/tensor_error.h"

namespace tenonnx {
namespace {

// The width of the finite values; 0 where there are none.
double width_of(const Tensor& tensor) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  visit_elements(tensor, [&](const auto* p) {
    if constexpr (is_float_element<std::remove_cvref_t<decltype(*p)>>)
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        const double v = to_double(p[i]);
        if (!std::isfinite(v)) continue;
        low = std::min(low, v);
        high = std::max(high, v);
      }
  });
  return high > low ? high - low : 0;
}

}  // namespace

Result<Check> allclose_gate(std::string_view name, const Tensor& reference,
                            const Tensor& candidate) {
  TENONNX_ASSIGN_OR_RETURN(const TensorError error, compare_tensors(reference, candidate));
  std::int64_t beyond = 0;
  visit_elements(reference, [&](const auto* r) {
    using T = std::remove_cvref_t<decltype(*r)>;
    if constexpr (is_float_element<T>) {
      const T* c = candidate.data<T>();
      for (std::int64_t i = 0; i < reference.size(); ++i) {
        const double x = to_double(r[i]), y = to_double(c[i]);
        const bool equal = x == y || (std::isnan(x) && std::isnan(y));
        const double allowed = kAllcloseAbsolute + kAllcloseRelative * std::fabs(x);
        // Inf - Inf is NaN, and an allowance of Inf would take everything.
        if (!equal && !(std::isfinite(x) && std::fabs(y - x) <= allowed)) ++beyond;
      }
    } else {
      beyond = error.differing;
    }
  });
  std::string note =
      beyond == 0 ? "" : fmt::format("of {}; largest error {:.3g}", error.count, error.max_abs);
  return make_check(fmt::format("{}: allclose", name), static_cast<double>(beyond),
                    Comparison::kAtMost,
                    {0, fmt::format("the gate 'allclose': |error| <= {:g} + {:g} |reference|",
                                    kAllcloseAbsolute, kAllcloseRelative)},
                    std::move(note));
}

Result<Check> psnr_gate(std::string_view name, const Tensor& reference, const Tensor& candidate,
                        double peak, std::string_view declared) {
  const std::string title = fmt::format("{}: PSNR", name);
  TENONNX_ASSIGN_OR_RETURN(const TensorError error, compare_tensors(reference, candidate));
  const double width = peak > 0 ? peak : width_of(reference);
  if (width == 0)
    return inconclusive_check(title,
                              "the reference is constant, so that it has no peak: declare "
                              "its range");
  TENONNX_ASSIGN_OR_RETURN(double value, psnr_db(reference, candidate, width));
  std::string note;
  if (error.broken > 0) {
    value = -std::numeric_limits<double>::infinity();
    note = fmt::format("Inf or NaN in {}", counted(error.broken, "element"));
  }
  return make_check(
      title, value, Comparison::kAtLeast,
      {kPsnrDb, fmt::format("the gate 'psnr': {:g} dB over {} {:g}", kPsnrDb,
                            peak > 0 ? "the declared range" : "the reference's width", width) +
                    (peak > 0 && !declared.empty() ? fmt::format(": {}", declared) : "")},
      std::move(note));
}

Check map_gate(double reference, double candidate) {
  return make_check("mAP difference", std::fabs(candidate - reference), Comparison::kAtMost,
                    {kMapDifference, "the gate 'map': half a point"},
                    fmt::format("{:.4f} reference, {:.4f} candidate", reference, candidate));
}

}  // namespace tenonnx
