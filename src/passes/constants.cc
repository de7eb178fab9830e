// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/constants.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/half.h"
#include "metrics/elements.h"

namespace tenonnx {
namespace {

double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x1p-14;
    case DType::kFloat64:
      return std::numeric_limits<double>::min();
    default:  // float32, and bfloat16 of the same exponents
      return std::numeric_limits<float>::min();
  }
}

// Element strides of `shape` seen as `target`: 0 where it is repeated.
std::vector<std::int64_t> strides_in(const Shape& shape, const Shape& target) {
  std::vector<std::int64_t> strides(target.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const std::int64_t dim = shape[shape.size() - 1 - k];
    if (dim != 1) strides[target.size() - 1 - k] = stride;
    stride *= dim;
  }
  return strides;
}

}  // namespace

std::optional<std::vector<double>> doubles(const Tensor& t) {
  std::optional<std::vector<double>> values;
  visit_elements(t, [&](const auto* p) {
    if constexpr (is_float_element<std::remove_cvref_t<decltype(*p)>>) {
      values.emplace(static_cast<std::size_t>(t.size()));
      for (std::size_t i = 0; i < values->size(); ++i) (*values)[i] = to_double(p[i]);
    }
  });
  return values;
}

std::optional<std::vector<std::int64_t>> integers_of(const Tensor& t) {
  const auto size = static_cast<std::size_t>(t.size());
  if (t.dtype() == DType::kInt64)
    return std::vector<std::int64_t>(t.data<std::int64_t>(), t.data<std::int64_t>() + size);
  if (t.dtype() == DType::kInt32)
    return std::vector<std::int64_t>(t.data<std::int32_t>(), t.data<std::int32_t>() + size);
  return std::nullopt;
}

Tensor int64_vector(const std::vector<std::int64_t>& values) {
  return Tensor::from<std::int64_t>(DType::kInt64, {static_cast<std::int64_t>(values.size())},
                                    values);
}

Tensor from_doubles(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor t(dtype, shape);
  visit_elements(t, [&]<typename T>(const T* /*type*/) {
    T* out = t.mutable_data<T>();
    if constexpr (is_float_element<T>)
      for (std::size_t i = 0; i < values.size(); ++i) out[i] = from_double<T>(values[i]);
  });
  return t;
}

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (std::size_t k = 0; k < result.size(); ++k) {
    const std::int64_t x = k < a.size() ? a[a.size() - 1 - k] : 1;
    const std::int64_t y = k < b.size() ? b[b.size() - 1 - k] : 1;
    if (x < 0 || y < 0 || (x != y && x != 1 && y != 1)) return std::nullopt;
    result[result.size() - 1 - k] = x == 1 ? y : x;
  }
  return result;
}

std::optional<Tensor> combine(const Tensor& a, const Tensor& b,
                              const std::function<double(double, double)>& op) {
  const auto shape = broadcast_shape(a.shape(), b.shape());
  if (a.dtype() != b.dtype() || !shape) return std::nullopt;
  const auto x = doubles(a), y = doubles(b);
  if (!x || !y) return std::nullopt;
  const auto x_strides = strides_in(a.shape(), *shape), y_strides = strides_in(b.shape(), *shape);
  std::vector<double> values(static_cast<std::size_t>(element_count(*shape)));
  std::vector<std::int64_t> at(shape->size(), 0);
  std::int64_t i = 0, j = 0;
  for (double& value : values) {
    value = op((*x)[static_cast<std::size_t>(i)], (*y)[static_cast<std::size_t>(j)]);
    if (value != 0 && std::fabs(value) < smallest_normal(a.dtype())) return std::nullopt;
    for (std::size_t k = shape->size(); k-- > 0;) {
      i += x_strides[k];
      j += y_strides[k];
      if (++at[k] < (*shape)[k]) break;
      i -= x_strides[k] * (*shape)[k];
      j -= y_strides[k] * (*shape)[k];
      at[k] = 0;
    }
  }
  Tensor result = from_doubles(a.dtype(), *shape, values);
  const auto rounded = doubles(result);
  for (const double value : *rounded)
    if (!std::isfinite(value)) return std::nullopt;
  return result;
}

bool holds_only(const Tensor& tensor, double value) {
  bool all = tensor.size() > 0;
  visit_elements(tensor, [&]<typename T>(const T* elements) {
    all = all && std::all_of(elements, elements + tensor.size(), [&](T element) {
            if constexpr (is_float_element<T>)
              return std::bit_cast<std::uint64_t>(to_double(element)) ==
                     std::bit_cast<std::uint64_t>(value);
            else
              return element == static_cast<T>(value);
          });
  });
  return all && tensor.dtype() != DType::kBool;
}

bool is_filled_with(const Rewriter& r, std::string_view name, double value) {
  const Tensor* t = r.constant(name);
  return t != nullptr && holds_only(*t, value);
}

bool broadcasts_into(const Shape& shape, const Shape& other) {
  if (shape.size() > other.size()) return false;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const std::int64_t dim = shape[shape.size() - 1 - k];
    if (dim != 1 && dim != other[other.size() - 1 - k]) return false;
  }
  return true;
}

}  // namespace tenonnx
