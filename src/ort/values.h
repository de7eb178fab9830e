// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Tensor to and from OrtValue, both ways without a copy.
#pragma once

#include <onnxruntime_cxx_api.h>

#include "tenonnx/base.h"

namespace tenonnx {

// kUndefined for what Tensor does not hold (strings, 4-bit and 8-bit floats, complex).
DType dtype_from_ort(ONNXTensorElementDataType type);
ONNXTensorElementDataType dtype_to_ort(DType dtype);

// A value that aliases the tensor's memory, which must outlive it. ONNX Runtime only reads a value
// that is an input and writes one that is bound as an output. InvalidArgument for an undefined
// tensor. Needs onnxruntime() to have succeeded.
Result<Ort::Value> value_from_tensor(const Tensor& tensor);

// A tensor that aliases the value's memory and keeps the value alive. Unsupported for strings and
// other types that Tensor does not hold, for sequences, maps and absent optional values, and for
// memory that the host cannot read. `name` appears in the error.
Result<Tensor> tensor_from_value(Ort::Value value, std::string_view name);

}  // namespace tenonnx
