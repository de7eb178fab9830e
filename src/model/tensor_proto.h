// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Between onnx::TensorProto and Tensor, and between the dtypes of both.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tenonnx/base.h"

namespace onnx {
class TensorProto;
class TypeProto;
class ValueInfoProto;
}  // namespace onnx

namespace tenonnx {

// onnx::TensorProto::DataType as int, 0 (UNDEFINED) for kUndefined.
int to_onnx_type(DType dtype);
// kUndefined for what DType has not: string, complex, 8-bit floats, 4-bit and 2-bit integers.
DType from_onnx_type(int type);
// "float", "int64", ... also for those; "type 99" where onnx knows none.
std::string onnx_type_name(int type);
// Bits of one element of any onnx type, 0 for strings and unknown types.
int onnx_type_bits(int type);

// The values of a TensorProto without external data. Where they lie in raw_data, the result is a
// view kept alive by `owner` (pass nullptr for a copy); from typed fields it is a copy. DataLoss
// where the values do not fill the shape; Unsupported for external data and dtypes that Tensor
// lacks.
Result<Tensor> to_tensor(const onnx::TensorProto& proto,
                         const std::shared_ptr<const void>& owner = nullptr);
// raw_data, little endian.
onnx::TensorProto to_tensor_proto(const Tensor& tensor, std::string_view name);

bool is_external(const onnx::TensorProto& proto);
struct ExternalRange {
  std::string location;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // 0 where it is not recorded: to the size of the tensor
  bool has_length = false;
};
// Where the data of an external tensor lies. DataLoss where a key is missing or not a number.
Result<ExternalRange> external_range(const onnx::TensorProto& proto);
// The bytes that a tensor's data takes, by its shape and type; 0 for strings. DataLoss where those
// are impossible.
Result<std::uint64_t> tensor_data_bytes(const onnx::TensorProto& proto);
void set_external(onnx::TensorProto& proto, const ExternalRange& range);

// Type and shape of a value; kUndefined where the type is missing or no tensor of a DType.
TensorInfo to_info(const onnx::ValueInfoProto& value);
TensorInfo to_info(std::string_view name, const onnx::TypeProto& type);
onnx::ValueInfoProto to_value_info(const TensorInfo& info);

}  // namespace tenonnx
