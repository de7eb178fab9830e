// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/values.h"

#include <array>
#include <memory>
#include <utility>

#include "base/status.h"

namespace tenonnx {
namespace {

constexpr std::array<std::pair<DType, ONNXTensorElementDataType>, 13> kTypes = {{
    {DType::kFloat32, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT},
    {DType::kFloat64, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE},
    {DType::kFloat16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16},
    {DType::kBFloat16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16},
    {DType::kInt8, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8},
    {DType::kInt16, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16},
    {DType::kInt32, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32},
    {DType::kInt64, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64},
    {DType::kUInt8, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8},
    {DType::kUInt16, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16},
    {DType::kUInt32, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32},
    {DType::kUInt64, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64},
    {DType::kBool, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL},
}};

}  // namespace

DType dtype_from_ort(ONNXTensorElementDataType type) {
  for (const auto& [ours, theirs] : kTypes)
    if (theirs == type) return ours;
  return DType::kUndefined;
}

ONNXTensorElementDataType dtype_to_ort(DType dtype) {
  for (const auto& [ours, theirs] : kTypes)
    if (ours == dtype) return theirs;
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

Result<Ort::Value> value_from_tensor(const Tensor& tensor) {
  if (!tensor.defined()) return InvalidArgument("an undefined tensor cannot be given to a session");
  try {
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
    // ONNX Runtime refuses a null pointer even where the tensor has no elements.
    static char nothing = 0;
    void* data = tensor.bytes() > 0 ? const_cast<void*>(tensor.raw()) : &nothing;
    return Ort::Value::CreateTensor(memory, data, tensor.bytes(), tensor.shape().data(),
                                    tensor.shape().size(), dtype_to_ort(tensor.dtype()));
  } catch (const Ort::Exception& e) {
    return Internal("ONNX Runtime refuses a {} tensor of shape {}: {}", to_string(tensor.dtype()),
                    to_string(tensor.shape()), e.what());
  }
}

Result<Tensor> tensor_from_value(Ort::Value value, std::string_view name) {
  try {
    if (!value || !value.HasValue()) return Unsupported("'{}' is an optional without value", name);
    if (!value.IsTensor()) {
      return Unsupported("'{}' is a sequence, map or sparse tensor; only dense tensors are handled",
                         name);
    }
    const auto info = value.GetTensorTypeAndShapeInfo();
    const DType dtype = dtype_from_ort(info.GetElementType());
    if (dtype == DType::kUndefined) {
      return Unsupported("'{}' holds {}, which is not handled", name,
                         info.GetElementType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING
                             ? std::string("strings")
                             : fmt::format("ONNX element type {}", int(info.GetElementType())));
    }
    if (value.GetTensorMemoryInfo().GetDeviceType() != OrtMemoryInfoDeviceType_CPU)
      return Unsupported("'{}' lies in device memory that the host cannot read", name);
    Shape shape = info.GetShape();
    const void* data = value.GetTensorRawData();
    auto owner = std::make_shared<const Ort::Value>(std::move(value));
    return Tensor::view(dtype, std::move(shape), data, std::move(owner));
  } catch (const Ort::Exception& e) {
    return Internal("'{}' cannot be read from ONNX Runtime: {}", name, e.what());
  }
}

}  // namespace tenonnx
