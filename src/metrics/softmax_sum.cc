// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/softmax_sum.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/status.h"
#include "metrics/elements.h"

namespace tenonnx {
namespace {

template <typename Store>
Result<SoftmaxSum> sum_along(const Tensor& tensor, int axis, Store&& store) {
  const auto rank = static_cast<int>(tensor.shape().size());
  const int at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank)
    return InvalidArgument("there is no axis {} in {}", axis, to_string(tensor.shape()));
  std::int64_t inner = 1, outer = 1;
  for (int i = 0; i < rank; ++i) {
    if (i < at) outer *= tensor.shape()[static_cast<std::size_t>(i)];
    if (i > at) inner *= tensor.shape()[static_cast<std::size_t>(i)];
  }
  const std::int64_t length = tensor.shape()[static_cast<std::size_t>(at)];
  SoftmaxSum out;
  bool floating = false;
  visit_elements(tensor, [&](const auto* p) {
    if constexpr (is_float_element<std::remove_cvref_t<decltype(*p)>>) {
      floating = true;
      for (std::int64_t lane = 0; lane < outer * inner; ++lane) {
        const std::int64_t first = lane / inner * length * inner + lane % inner;
        double sum = 0;
        for (std::int64_t k = 0; k < length; ++k) sum += store(to_double(p[first + k * inner]));
        const double error =
            std::isfinite(sum) ? std::fabs(sum - 1) : std::numeric_limits<double>::infinity();
        if (out.worst_lane >= 0 && error <= out.max_error) continue;
        out.max_error = error;
        out.worst_lane = lane;
      }
      out.lanes = outer * inner;
    }
  });
  if (!floating)
    return InvalidArgument("the sum of a Softmax needs a floating dtype, got {}",
                           to_string(tensor.dtype()));
  return out;
}

}  // namespace

Result<SoftmaxSum> softmax_sum(const Tensor& tensor, int axis) {
  return sum_along(tensor, axis, [](double v) { return v; });
}

Result<SoftmaxSum> softmax_sum_baseline(const Tensor& reference, int axis, DType storage) {
  if (storage == DType::kFloat16 || storage == DType::kBFloat16)
    return sum_along(reference, axis, [storage](double v) { return stored(v, storage); });
  return softmax_sum(reference, axis);
}

}  // namespace tenonnx
