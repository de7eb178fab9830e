// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the custom operators of this module share: element types, attributes, shapes without an
// allocation, errors as a status, and ONNX Runtime's thread pool.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/parallel.h"
#include "kernels/storage.h"

namespace tenonnx::kernels {

// Operators by name, in the order in which they are added to the domain.
using CustomOps = std::vector<std::unique_ptr<OrtCustomOp, void (*)(OrtCustomOp*)>>;

template <typename Op, typename... Args>
void add_op(CustomOps& ops, Args&&... args) {
  ops.emplace_back(new Op(std::forward<Args>(args)...),
                   [](OrtCustomOp* op) { delete static_cast<Op*>(op); });
}

template <typename T>
constexpr ONNXTensorElementDataType element_type() {
  if constexpr (std::is_same_v<T, float>) return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE;
  if constexpr (std::is_same_v<T, Half>) return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
  if constexpr (std::is_same_v<T, BHalf>) return ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;
  if constexpr (std::is_same_v<T, std::int8_t>) return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;
  if constexpr (std::is_same_v<T, std::int16_t>) return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16;
  if constexpr (std::is_same_v<T, std::int32_t>) return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
  if constexpr (std::is_same_v<T, std::int64_t>) return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

// Ends in a status of ONNX Runtime: "tenonnx GridSample: what".
[[noreturn]] inline void fail(std::string_view op, const std::string& what) {
  throw Ort::Exception("tenonnx " + std::string(op) + ": " + what, ORT_INVALID_ARGUMENT);
}

// ONNX Runtime has one error for an attribute that is absent and one for another type, told apart
// by their text alone: a wrong type must not count as the default.
inline void check_absent(const Ort::Exception& error, const char* name) {
  if (std::string_view(error.what()).find("type") != std::string_view::npos)
    throw Ort::Exception("tenonnx: the attribute '" + std::string(name) +
                             "' has another type than the operator takes: " + error.what(),
                         ORT_INVALID_ARGUMENT);
}

template <typename T>
T attribute_or(const Ort::ConstKernelInfo& info, const char* name, T fallback) {
  try {
    return info.GetAttribute<T>(name);
  } catch (const Ort::Exception& error) {
    check_absent(error, name);
    return fallback;
  }
}

template <typename T>
std::vector<T> attributes_or_none(const Ort::ConstKernelInfo& info, const char* name) {
  try {
    return info.GetAttributes<T>(name);
  } catch (const Ort::Exception& error) {
    check_absent(error, name);
    return {};
  }
}

// A shape of at most 8 dimensions, on the stack.
class Dims {
 public:
  static constexpr std::size_t kMost = 8;
  Dims(std::string_view op, std::string_view input, const Ort::ConstValue& value) {
    const auto info = value.GetTensorTypeAndShapeInfo();
    rank_ = info.GetDimensionsCount();
    if (rank_ > kMost)
      fail(op, std::string(input) + " has rank " + std::to_string(rank_) + ", at most " +
                   std::to_string(kMost) + " is possible");
    Ort::ThrowOnError(Ort::GetApi().GetDimensions(info, dims_.data(), rank_));
  }
  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t i) const { return dims_[i]; }
  std::int64_t count() const {
    std::int64_t product = 1;
    for (std::size_t i = 0; i < rank_; ++i) product *= dims_[i];
    return product;
  }
  std::string text() const {
    std::string out = "[";
    for (std::size_t i = 0; i < rank_; ++i) out += (i ? "," : "") + std::to_string(dims_[i]);
    return out + "]";
  }

 private:
  std::array<std::int64_t, kMost> dims_{};
  std::size_t rank_ = 0;
};

// ONNX Runtime's intra-op threads, for as long as one call of a kernel lasts.
class OrtParallel final : public Parallel {
 public:
  explicit OrtParallel(const Ort::KernelContext& context) : context_(context) {}
  void run(std::size_t count, void (*task)(void*, std::size_t), void* data) const override {
    Job job{task, data, {}, {}};
    context_.ParallelFor(&Job::run, count, 0, &job);
    if (job.thrown) std::rethrow_exception(job.error);
  }

 private:
  // An exception must not leave a thread of the pool: the first one is thrown again by the caller.
  struct Job {
    void (*task)(void*, std::size_t);
    void* data;
    std::atomic<bool> thrown;
    std::exception_ptr error;
    static void run(void* raw, std::size_t i) {
      Job& job = *static_cast<Job*>(raw);
      try {
        job.task(job.data, i);
      } catch (...) {
        if (!job.thrown.exchange(true)) job.error = std::current_exception();
      }
    }
  };

  const Ort::KernelContext& context_;
};

// Kernel: Kernel(const Ort::ConstKernelInfo&) and void compute(const Ort::KernelContext&), which
// throw.
template <typename Kernel>
struct KernelShell {
  explicit KernelShell(const OrtKernelInfo* info) : kernel(Ort::ConstKernelInfo(info)) {}
  OrtStatusPtr ComputeV2(OrtKernelContext* raw) noexcept {
    try {
      kernel.compute(Ort::KernelContext(raw));
      return nullptr;
    } catch (const Ort::Exception& error) {
      return Ort::Status(error).release();
    } catch (const std::exception& error) {
      return Ort::Status(error.what(), ORT_FAIL).release();
    }
  }
  Kernel kernel;
};

// Operators of one name and several types share one schema in ONNX Runtime, and the shape inference
// of the first: so the element type of an output has to be asked for, not taken from the C++ type.
inline ONNXTensorElementDataType input_type(const OrtShapeInferContext* context, std::size_t i) {
  OrtTensorTypeAndShapeInfo* info = nullptr;  // owned by the context
  Ort::ThrowOnError(Ort::GetApi().ShapeInferContext_GetInputTypeShape(context, i, &info));
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  Ort::ThrowOnError(Ort::GetApi().GetTensorElementType(info, &type));
  return type;
}

// Whether a dimension of an input is neither a number nor named. Such a one reads as -1, and a
// shape that is made of it would be believed.
inline bool has_unnamed_dimension(Ort::ShapeInferContext& context) {
  for (std::size_t i = 0; i < context.GetInputCount(); ++i)
    for (const auto& dim : context.GetInputShape(i))
      if (dim.IsInt() && dim.AsInt() < 0) return true;
  return false;
}

// Derived: the name, the types of inputs and outputs, and optionally
//   static OrtStatusPtr infer_shapes(Ort::ShapeInferContext&, ONNXTensorElementDataType of_input_0)
template <typename Derived, typename Kernel>
struct OpBase : Ort::CustomOpBase<Derived, KernelShell<Kernel>, true> {
  OpBase() {
    if constexpr (requires { &Derived::infer_shapes; })
      OrtCustomOp::InferOutputShapeFn = [](const OrtCustomOp*,
                                           OrtShapeInferContext* raw) -> OrtStatusPtr {
        try {
          Ort::ShapeInferContext context(&Ort::GetApi(), raw);
          if (has_unnamed_dimension(context)) return nullptr;
          return Derived::infer_shapes(context, input_type(raw, 0));
        } catch (const Ort::Exception& error) {
          return Ort::Status(error).release();
        }
      };
  }
  OrtStatusPtr CreateKernelV2(const OrtApi&, const OrtKernelInfo* info, void** out) const noexcept {
    try {
      *out = new KernelShell<Kernel>(info);
      return nullptr;
    } catch (const Ort::Exception& error) {
      return Ort::Status(error).release();
    } catch (const std::exception& error) {
      return Ort::Status(error.what(), ORT_FAIL).release();
    }
  }
  const char* GetExecutionProviderType() const { return "CPUExecutionProvider"; }
};

}  // namespace tenonnx::kernels
