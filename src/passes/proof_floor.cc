// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_floor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/status.h"
#include "metrics/elements.h"
#include "metrics/tensor_error.h"

namespace tenonnx {
namespace {

// Half a unit in the last place relative to a value at the lower end of its binade.
double half_unit(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 0x1p-24;
    case DType::kFloat64:
      return 0x1p-53;
    case DType::kFloat16:
      return 0x1p-11;
    case DType::kBFloat16:
      return 0x1p-8;
    default:
      return 0;
  }
}

double largest_finite(const Tensor& tensor) {
  double largest = 0;
  visit_elements(tensor, [&](const auto* p) {
    using Element = std::remove_cvref_t<decltype(*p)>;
    if constexpr (is_float_element<Element>) {
      for (std::int64_t i = 0, n = tensor.size(); i < n; ++i) {
        const double v = std::fabs(to_double(p[i]));
        if (std::isfinite(v)) largest = std::max(largest, v);
      }
    }
  });
  return largest;
}

}  // namespace

Result<OutputFloor> output_floor(const Tensor& value, std::span<const Tensor> disturbed) {
  OutputFloor out;
  out.floor.origin =
      disturbed.empty() ? "storing the result" : "the old form when roundings disturb it";
  for (const Tensor& other : disturbed) {
    TENONNX_ASSIGN_OR_RETURN(const TensorError error, compare_tensors(value, other));
    out.differing = std::max(out.differing, error.differing);
    out.floor.max_abs = std::max(out.floor.max_abs, error.max_abs);
    const double l2 = error.relative_l2.value_or(0);
    // Infinite where the value is all zero and the disturbed one is not: no relative figure then.
    if (std::isfinite(l2)) out.floor.relative_l2 = std::max(out.floor.relative_l2, l2);
  }
  const double unit = half_unit(value.dtype());
  out.floor.max_abs += unit * largest_finite(value);
  out.floor.relative_l2 += unit;
  return out;
}

Result<std::vector<Check>> algebraic_checks(std::string_view tensor, const Tensor& before,
                                            const Tensor& after, const OutputFloor& floor) {
  TENONNX_ASSIGN_OR_RETURN(const TensorError error, compare_tensors(before, after));
  std::vector<Check> checks;
  if (half_unit(before.dtype()) == 0) {
    checks.push_back(make_check(fmt::format("{}: differing elements", tensor),
                                static_cast<double>(error.differing), Comparison::kAtMost,
                                {kProofFactor * static_cast<double>(floor.differing),
                                 fmt::format("{:g} x the {} that differ in {}", kProofFactor,
                                             floor.differing, floor.floor.origin)}));
    return checks;
  }
  if (error.broken > 0) {
    checks.push_back(finite_check(tensor, error));
    return checks;
  }
  // The figures leave Inf and NaN out: what became of them must be asked apart.
  if (error.masked_changed > 0)
    checks.push_back(make_check(fmt::format("{}: Inf or NaN that changed", tensor),
                                static_cast<double>(error.masked_changed), Comparison::kAtMost,
                                {0, "equal in real arithmetic"}));
  checks.push_back(make_check(fmt::format("{}: max abs error", tensor), error.max_abs,
                              Comparison::kAtMost,
                              limit_from_floor(floor.floor, FloorFigure::kMaxAbs, kProofFactor)));
  // Against a reference of zeros there is no relative figure; max abs has said all.
  if (error.relative_l2 && std::isfinite(*error.relative_l2))
    checks.push_back(
        make_check(fmt::format("{}: relative L2", tensor), *error.relative_l2, Comparison::kAtMost,
                   limit_from_floor(floor.floor, FloorFigure::kRelativeL2, kProofFactor)));
  return checks;
}

Result<std::vector<Check>> bitwise_checks(std::string_view tensor, const Tensor& before,
                                          const Tensor& after) {
  TENONNX_ASSIGN_OR_RETURN(const Identity identity, compare_identical(before, after));
  std::string note;
  if (!identity.identical) {
    note = fmt::format("of {}, first at {}", before.size(), identity.first_index);
    if (identity.zero_signs > 0) note += fmt::format("; {} only +0 for -0", identity.zero_signs);
  }
  return std::vector<Check>{make_check(fmt::format("{}: differing elements", tensor),
                                       static_cast<double>(identity.differing), Comparison::kAtMost,
                                       {0, "class bitwise: every bit"}, std::move(note))};
}

Result<std::vector<Check>> bounded_checks(std::string_view tensor, const Tensor& before,
                                          const Tensor& after, double bound,
                                          std::string_view origin) {
  TENONNX_ASSIGN_OR_RETURN(const TensorError error, compare_tensors(before, after));
  if (error.broken > 0) return std::vector<Check>{finite_check(tensor, error)};
  return std::vector<Check>{make_check(fmt::format("{}: max abs error", tensor), error.max_abs,
                                       Comparison::kAtMost, {bound, std::string(origin)})};
}

double severity(const Check& check) {
  if (check.verdict == Verdict::kInconclusive) return 0;
  if (check.limit.value > 0) return check.value / check.limit.value;
  return check.value > check.limit.value ? std::numeric_limits<double>::infinity() : 0;
}

}  // namespace tenonnx
