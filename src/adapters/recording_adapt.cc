// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A recorded array as the model's tensor: only what names.json asks for, and a hint where more
// would be needed.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "adapters/recording.h"
#include "base/status.h"
#include "metrics/elements.h"

namespace tenonnx {
namespace {

Shape without_ones(Shape shape) {
  std::erase(shape, 1);
  return shape;
}

// The model's shape for an array of the shape `got` with as many elements; where the model leaves
// dimensions open, `got` with dimensions of 1 put or left out in front. `got` where neither fits.
Shape reshaped_to(const Shape& got, const TensorInfo& info) {
  if (!info.has_rank) return got;
  if (element_count(info.shape) >= 0)
    return element_count(info.shape) == element_count(got) ? info.shape : got;
  Shape shape = got;
  while (shape.size() > info.shape.size() && shape.front() == 1) shape.erase(shape.begin());
  while (shape.size() < info.shape.size()) shape.insert(shape.begin(), 1);
  return shape_fits(shape, info) ? shape : got;
}

Shape permuted(const Shape& shape, const std::vector<std::int64_t>& axes) {
  Shape out;
  for (const std::int64_t axis : axes) out.push_back(shape[static_cast<std::size_t>(axis)]);
  return out;
}

Tensor transposed(const Tensor& array, const std::vector<std::int64_t>& axes) {
  const std::size_t rank = axes.size(), item = size_of(array.dtype());
  Tensor out(array.dtype(), permuted(array.shape(), axes));
  std::vector<std::size_t> strides(rank, item);  // of the array, in bytes, in the order of `out`
  for (std::size_t i = 0; i < rank; ++i)
    for (std::size_t j = static_cast<std::size_t>(axes[i]) + 1; j < rank; ++j)
      strides[i] *= static_cast<std::size_t>(array.shape()[j]);
  std::vector<std::int64_t> index(rank, 0);
  const auto* from = static_cast<const char*>(array.raw());
  auto* to = static_cast<char*>(out.mutable_raw());
  std::size_t offset = 0;
  for (std::int64_t n = 0; n < out.size(); ++n, to += item) {
    std::memcpy(to, from + offset, item);
    for (std::size_t i = rank; i-- > 0;) {
      offset += strides[i];
      if (++index[i] < out.shape()[i]) break;
      offset -= strides[i] * static_cast<std::size_t>(index[i]);
      index[i] = 0;
    }
  }
  return out;
}

Result<Tensor> dequantised(const Tensor& array, double scale, double zero_point,
                           const std::string& where) {
  Tensor out(DType::kFloat32, array.shape());
  bool integers = false;
  visit_elements(array, [&]<typename T>(const T* from) {
    if constexpr (!is_float_element<T>) {
      integers = true;
      for (std::int64_t i = 0; i < array.size(); ++i)
        out.mutable_data<float>()[i] =
            static_cast<float>((static_cast<double>(from[i]) - zero_point) * scale);
    }
  });
  if (!integers)
    return InvalidArgument(
        "{} is {}: \"scale\" and \"zero_point\" are for quantised integers; drop them", where,
        to_string(array.dtype()));
  return out;
}

// One value as T; false where an integer cannot hold it. Floats are rounded to nearest.
template <typename T>
bool store(double value, T& to) {
  if constexpr (std::is_same_v<T, Float16Bits>) {
    to.bits = float_to_float16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, BFloat16Bits>) {
    to.bits = float_to_bfloat16(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    to = static_cast<T>(value);
  } else {
    // Both bounds are powers of two, exact in double; !(...) also catches NaN.
    if (!(value >= static_cast<double>(std::numeric_limits<T>::min()) &&
          value < std::ldexp(1.0, std::numeric_limits<T>::digits)) ||
        value != std::floor(value))
      return false;
    to = static_cast<T>(value);
  }
  return true;
}

Result<Tensor> converted(const Tensor& array, DType dtype, const std::string& where) {
  Tensor out(dtype, array.shape());
  std::int64_t bad = -1;
  visit_elements(array, [&]<typename From>(const From* from) {
    const auto value = [&](std::int64_t i) {
      if constexpr (is_float_element<From>)
        return to_double(from[i]);
      else
        return static_cast<double>(from[i]);
    };
    visit_elements(out, [&]<typename To>(const To* to) {
      for (std::int64_t i = 0; i < array.size() && bad < 0; ++i)
        if (!store(value(i), const_cast<To*>(to)[i])) bad = i;
    });
  });
  if (bad >= 0)
    return InvalidArgument(
        "{}: element {} of the {} array is no value of {}: it cannot be converted", where, bad,
        to_string(array.dtype()), to_string(dtype));
  return out;
}

std::string dtype_hint(DType got, DType wanted) {
  const bool quantised =
      got == DType::kInt8 || got == DType::kUInt8 || got == DType::kInt16 || got == DType::kUInt16;
  if (quantised && (wanted == DType::kFloat32 || wanted == DType::kFloat16))
    return "if it is quantised, give its \"scale\" and \"zero_point\" in names.json";
  return "if the values are right, add \"convert\": true to its entry in names.json";
}

std::string shape_hint(const Shape& got, const TensorInfo& info) {
  if (got.size() == 4 && info.shape.size() == 4) {
    if (shape_fits(permuted(got, {0, 3, 1, 2}), info))
      return "it looks like NHWC against the model's NCHW: add \"layout\": \"NHWC\" to its entry "
             "in "
             "names.json";
    if (shape_fits(permuted(got, {0, 2, 3, 1}), info))
      return "it looks like NCHW against the model's NHWC: add \"layout\": \"NCHW\" to its entry "
             "in "
             "names.json";
  }
  const Shape reshaped = reshaped_to(got, info);
  if (shape_fits(reshaped, info) && without_ones(reshaped) == without_ones(got))
    return "add \"reshape\": true to its entry in names.json";
  if (element_count(got) == element_count(info.shape))
    return "as many elements in another order of axes? Give \"transpose\" in its entry of "
           "names.json, or \"reshape\": true where only the dimensions are written otherwise";
  return "recorded from another model, or with another input size";
}

}  // namespace

bool shape_fits(const Shape& shape, const TensorInfo& info) {
  if (!info.has_rank) return true;
  if (shape.size() != info.shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (info.shape[i] >= 0 && info.shape[i] != shape[i]) return false;
  return true;
}

Result<Tensor> adapt(const Tensor& array, const RecordedName* entry, const TensorInfo& info,
                     const std::string& where) {
  Tensor tensor = array;
  if (entry != nullptr && entry->scale) {
    TENONNX_ASSIGN_OR_RETURN(tensor, dequantised(tensor, *entry->scale, entry->zero_point, where));
  }
  if (entry != nullptr && !entry->transpose.empty()) {
    if (entry->transpose.size() != tensor.shape().size())
      return InvalidArgument(
          "{} has shape {}; its \"transpose\" or \"layout\" in names.json is for {} "
          "dimensions",
          where, to_string(tensor.shape()), entry->transpose.size());
    tensor = transposed(tensor, entry->transpose);
  }
  if (entry != nullptr && entry->reshape && !shape_fits(tensor.shape(), info)) {
    TENONNX_ASSIGN_OR_RETURN(tensor, tensor.reshaped(reshaped_to(tensor.shape(), info)));
  }
  if (info.dtype != DType::kUndefined && tensor.dtype() != info.dtype) {
    if (entry == nullptr || !entry->convert)
      return InvalidArgument("{} is {}, the model's '{}' is {}: {}", where,
                             to_string(tensor.dtype()), info.name, to_string(info.dtype),
                             dtype_hint(tensor.dtype(), info.dtype));
    TENONNX_ASSIGN_OR_RETURN(tensor, converted(tensor, info.dtype, where));
  }
  if (!shape_fits(tensor.shape(), info))
    return InvalidArgument("{} has shape {}{}, the model's '{}' has {}: {}", where,
                           to_string(tensor.shape()),
                           entry != nullptr && !entry->transpose.empty() ? " (transposed)" : "",
                           info.name, to_string(info.shape), shape_hint(tensor.shape(), info));
  return tensor;
}

}  // namespace tenonnx
