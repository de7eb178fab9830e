// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "base/status.h"

namespace tenonnx {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<DTypeRow, 14> kDTypes = {{
    {DType::kUndefined, "undefined", 0},
    {DType::kFloat32, "float32", 4},
    {DType::kFloat64, "float64", 8},
    {DType::kFloat16, "float16", 2},
    {DType::kBFloat16, "bfloat16", 2},
    {DType::kInt8, "int8", 1},
    {DType::kInt16, "int16", 2},
    {DType::kInt32, "int32", 4},
    {DType::kInt64, "int64", 8},
    {DType::kUInt8, "uint8", 1},
    {DType::kUInt16, "uint16", 2},
    {DType::kUInt32, "uint32", 4},
    {DType::kUInt64, "uint64", 8},
    {DType::kBool, "bool", 1},
}};

// One cache line, and the widest vector register (AVX-512).
constexpr std::size_t kAlignment = 64;

}  // namespace

std::size_t size_of(DType dtype) { return kDTypes.at(static_cast<std::size_t>(dtype)).bytes; }

std::string_view to_string(DType dtype) { return kDTypes.at(static_cast<std::size_t>(dtype)).name; }

Result<DType> dtype_from_string(std::string_view name) {
  for (const DTypeRow& row : kDTypes)
    if (row.name == name && row.dtype != DType::kUndefined) return row.dtype;
  return InvalidArgument(
      "unknown dtype '{}'; use float32, float64, float16, bfloat16, (u)int8, "
      "(u)int16, (u)int32, (u)int64 or bool",
      name);
}

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i) out += ',';
    out += shape[i] < 0 ? "?" : std::to_string(shape[i]);
  }
  return out + "]";
}

std::int64_t element_count(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) {
    if (d < 0) return -1;
    if (__builtin_mul_overflow(n, d, &n)) return -1;
  }
  return n;
}

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  const std::int64_t n = element_count(shape_);
  if (n < 0 || dtype == DType::kUndefined) {
    dtype_ = DType::kUndefined;
    shape_.clear();
    return;
  }
  const std::size_t bytes = static_cast<std::size_t>(n) * size_of(dtype);
  const std::size_t padded = (bytes / kAlignment + 1) * kAlignment;
  void* p = std::aligned_alloc(kAlignment, padded);
  if (p == nullptr) throw std::bad_alloc();
  std::memset(p, 0, padded);
  data_ = p;
  owner_ = std::shared_ptr<const void>(p, [](const void* q) { std::free(const_cast<void*>(q)); });
}

Tensor Tensor::view(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner) {
  Tensor t;
  if (element_count(shape) < 0) return t;
  t.dtype_ = dtype;
  t.shape_ = std::move(shape);
  t.data_ = const_cast<void*>(data);
  t.owner_ = std::move(owner);
  return t;
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor t(dtype_, shape_);
  if (bytes() > 0) std::memcpy(t.mutable_raw(), raw(), bytes());
  return t;
}

Result<Tensor> Tensor::reshaped(Shape shape) const {
  if (element_count(shape) != size())
    return InvalidArgument("cannot reshape {} to {}: {} elements against {}", to_string(shape_),
                           to_string(shape), size(), element_count(shape));
  Tensor t = *this;
  t.shape_ = std::move(shape);
  return t;
}

}  // namespace tenonnx
