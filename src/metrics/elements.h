// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The elements of a tensor by their C++ type, so that a loop is written once for every dtype.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/half.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct Float16Bits {
  std::uint16_t bits;
};
struct BFloat16Bits {
  std::uint16_t bits;
};

template <typename T>
inline constexpr bool is_float_element =
    std::is_floating_point_v<T> || std::is_same_v<T, Float16Bits> ||
    std::is_same_v<T, BFloat16Bits>;

inline double to_double(double v) { return v; }
inline double to_double(float v) { return v; }
inline double to_double(Float16Bits v) { return float16_to_float(v.bits); }
inline double to_double(BFloat16Bits v) { return bfloat16_to_float(v.bits); }

// Rounded to the element's type; to the 16-bit ones by way of float32, as devices do.
template <typename T>
T from_double(double v) {
  const auto single = static_cast<float>(v);
  if constexpr (std::is_same_v<T, Float16Bits>)
    return {float_to_float16(single)};
  else if constexpr (std::is_same_v<T, BFloat16Bits>)
    return {float_to_bfloat16(single)};
  else
    return static_cast<T>(v);
}

inline bool is_floating(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

// `value` rounded to what `storage` holds: kFloat16, kBFloat16, else float32.
inline double stored(double value, DType storage) {
  const auto f = static_cast<float>(value);
  if (storage == DType::kFloat16) return float16_to_float(float_to_float16(f));
  if (storage == DType::kBFloat16) return bfloat16_to_float(float_to_bfloat16(f));
  return f;
}

// Calls visit(const T*) with the element type of the tensor; not at all where it is undefined. bool
// is visited as uint8.
template <typename Visitor>
void visit_elements(const Tensor& tensor, Visitor&& visit) {
  switch (tensor.dtype()) {
    case DType::kUndefined:
      return;
    case DType::kFloat32:
      return visit(tensor.data<float>());
    case DType::kFloat64:
      return visit(tensor.data<double>());
    case DType::kFloat16:
      return visit(tensor.data<Float16Bits>());
    case DType::kBFloat16:
      return visit(tensor.data<BFloat16Bits>());
    case DType::kInt8:
      return visit(tensor.data<std::int8_t>());
    case DType::kInt16:
      return visit(tensor.data<std::int16_t>());
    case DType::kInt32:
      return visit(tensor.data<std::int32_t>());
    case DType::kInt64:
      return visit(tensor.data<std::int64_t>());
    case DType::kUInt8:
    case DType::kBool:
      return visit(tensor.data<std::uint8_t>());
    case DType::kUInt16:
      return visit(tensor.data<std::uint16_t>());
    case DType::kUInt32:
      return visit(tensor.data<std::uint32_t>());
    case DType::kUInt64:
      return visit(tensor.data<std::uint64_t>());
  }
}

}  // namespace tenonnx
