// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The stable surface of module base: Status, Result, DType, Tensor. Every other public header
// builds on these. No protobuf, ONNX Runtime, vendor or SIMD header is reachable from here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#define TENONNX_API [[gnu::visibility("default")]]

namespace tenonnx {

// "0.1.0": the version of the library that is running.
TENONNX_API std::string_view version();

// What kind of failure it was. The command line maps kInvalidArgument, kNotFound, kUnsupported,
// kFailedPrecondition and kDataLoss to exit code 2.
enum class StatusCode : std::uint8_t {
  kOk,
  kInvalidArgument,     // the caller gave something that cannot be right
  kNotFound,            // a file, tensor, node or name does not exist
  kFailedPrecondition,  // right in itself, but not in this state (package FAILED, file exists)
  kUnsupported,         // understood, but not something this version or this target can do
  kDataLoss,            // a file is damaged: a hash, a magic number, a truncated field
  kIo,                  // the operating system refused
  kInternal,            // a defect of ours, or of a library below us
};

TENONNX_API std::string_view to_string(StatusCode code);

// The outcome of an operation that returns nothing else. The message says what failed, where, why
// and what to do next; it is meant to be printed as it stands.
class [[nodiscard]] TENONNX_API Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}
  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // The same failure with "<where>: " put before its message.
  Status at(std::string_view where) const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}        // NOLINT: implicit
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {  // NOLINT: implicit
    if (std::get<1>(state_).ok())
      state_.template emplace<1>(StatusCode::kInternal, "Result built from an ok Status");
  }
  bool ok() const { return state_.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(state_); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

enum class DType : std::uint8_t {
  kUndefined,
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
};

// Bytes of one element; 0 for kUndefined.
TENONNX_API std::size_t size_of(DType dtype);
// "float32", "int64", ...: the names of numpy, and "bfloat16".
TENONNX_API std::string_view to_string(DType dtype);
TENONNX_API Result<DType> dtype_from_string(std::string_view name);

using Shape = std::vector<std::int64_t>;

// "[1,3,640,640]"; a dynamic dimension (-1) prints as "?".
TENONNX_API std::string to_string(const Shape& shape);
// The product of the dimensions, 1 for a scalar; -1 where a dimension is negative or the product
// does not fit int64.
TENONNX_API std::int64_t element_count(const Shape& shape);

// A dense row-major array. Copying a Tensor copies the handle, not the data: both then alias the
// same memory, as the runtimes do; clone() copies the data. Memory that Tensor allocates itself is
// 64-byte aligned and zeroed.
class TENONNX_API Tensor {
 public:
  Tensor() = default;
  // Allocates. The shape must have no negative dimension.
  Tensor(DType dtype, Shape shape);
  // Wraps memory that `owner` keeps alive (an mmap, a runtime's value). Read-only unless the caller
  // knows better: mutable_data() on a view writes through.
  static Tensor view(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner);
  template <typename T>
  static Tensor from(DType dtype, Shape shape, const std::vector<T>& values);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t size() const { return defined() ? element_count(shape_) : 0; }
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * size_of(dtype_); }
  bool defined() const { return dtype_ != DType::kUndefined; }
  const void* raw() const { return data_; }
  void* mutable_raw() { return data_; }
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }
  template <typename T>
  T* mutable_data() {
    return static_cast<T*>(data_);
  }
  Tensor clone() const;
  // The same data under another shape of equal element count.
  Result<Tensor> reshaped(Shape shape) const;

 private:
  DType dtype_ = DType::kUndefined;
  Shape shape_;
  void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

// Name, dtype and shape of a model's input or output; -1 marks a dynamic dimension.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;
  bool has_rank = true;  // false: even the number of dimensions is unknown, and shape is empty
};

using TensorMap = std::map<std::string, Tensor>;

template <typename T>
Tensor Tensor::from(DType dtype, Shape shape, const std::vector<T>& values) {
  Tensor t(dtype, std::move(shape));
  if (t.bytes() != values.size() * sizeof(T)) return {};
  T* p = t.mutable_data<T>();
  for (std::size_t i = 0; i < values.size(); ++i) p[i] = values[i];
  return t;
}

}  // namespace tenonnx
