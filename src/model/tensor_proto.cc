// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/tensor_proto.h"

#include <onnx/onnx_pb.h>

#include <array>
#include <charconv>
#include <cstring>

#include "base/status.h"

namespace tenonnx {
namespace {

using onnx::TensorProto;

struct TypeRow {
  int onnx_type;
  DType dtype;
};

constexpr std::array<TypeRow, 13> kTypes = {{{TensorProto::FLOAT, DType::kFloat32},
                                             {TensorProto::DOUBLE, DType::kFloat64},
                                             {TensorProto::FLOAT16, DType::kFloat16},
                                             {TensorProto::BFLOAT16, DType::kBFloat16},
                                             {TensorProto::INT8, DType::kInt8},
                                             {TensorProto::INT16, DType::kInt16},
                                             {TensorProto::INT32, DType::kInt32},
                                             {TensorProto::INT64, DType::kInt64},
                                             {TensorProto::UINT8, DType::kUInt8},
                                             {TensorProto::UINT16, DType::kUInt16},
                                             {TensorProto::UINT32, DType::kUInt32},
                                             {TensorProto::UINT64, DType::kUInt64},
                                             {TensorProto::BOOL, DType::kBool}}};

template <typename To, typename From>
void narrow_into(Tensor& out, const google::protobuf::RepeatedField<From>& values) {
  To* p = out.mutable_data<To>();
  for (int i = 0; i < values.size(); ++i) p[i] = static_cast<To>(values[i]);
}

// Fills `out` from the field that holds its dtype; false where the count differs.
bool fill_from_fields(const TensorProto& proto, Tensor& out) {
  const auto fits = [&](int n) { return n == out.size(); };
  switch (out.dtype()) {
    case DType::kFloat32:
      if (!fits(proto.float_data_size())) return false;
      narrow_into<float>(out, proto.float_data());
      return true;
    case DType::kFloat64:
      if (!fits(proto.double_data_size())) return false;
      narrow_into<double>(out, proto.double_data());
      return true;
    case DType::kInt64:
      if (!fits(proto.int64_data_size())) return false;
      narrow_into<std::int64_t>(out, proto.int64_data());
      return true;
    case DType::kUInt32:
      if (!fits(proto.uint64_data_size())) return false;
      narrow_into<std::uint32_t>(out, proto.uint64_data());
      return true;
    case DType::kUInt64:
      if (!fits(proto.uint64_data_size())) return false;
      narrow_into<std::uint64_t>(out, proto.uint64_data());
      return true;
    default:
      break;
  }
  if (!fits(proto.int32_data_size())) return false;
  if (out.dtype() == DType::kBool) {
    for (int i = 0; i < proto.int32_data_size(); ++i)
      out.mutable_data<bool>()[i] = proto.int32_data(i) != 0;
    return true;
  }
  switch (size_of(out.dtype())) {
    case 1:
      narrow_into<std::uint8_t>(out, proto.int32_data());
      return true;
    case 2:
      narrow_into<std::uint16_t>(out, proto.int32_data());
      return true;
    default:
      narrow_into<std::int32_t>(out, proto.int32_data());
      return true;
  }
}

Result<std::uint64_t> parse_u64(const std::string& text, const TensorProto& proto,
                                std::string_view key) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return DataLoss("external data of '{}': {} is '{}', not a number of bytes", proto.name(), key,
                    text);
  return value;
}

}  // namespace

int to_onnx_type(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row.onnx_type;
  return TensorProto::UNDEFINED;
}

DType from_onnx_type(int type) {
  for (const TypeRow& row : kTypes)
    if (row.onnx_type == type) return row.dtype;
  return DType::kUndefined;
}

std::string onnx_type_name(int type) {
  if (!TensorProto::DataType_IsValid(type)) return fmt::format("type {}", type);
  std::string name = TensorProto::DataType_Name(static_cast<TensorProto::DataType>(type));
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name;
}

int onnx_type_bits(int type) {
  if (const DType dtype = from_onnx_type(type); dtype != DType::kUndefined)
    return static_cast<int>(size_of(dtype)) * 8;
  switch (type) {
    case TensorProto::COMPLEX64:
      return 64;
    case TensorProto::COMPLEX128:
      return 128;
    case TensorProto::FLOAT8E4M3FN:
    case TensorProto::FLOAT8E4M3FNUZ:
    case TensorProto::FLOAT8E5M2:
    case TensorProto::FLOAT8E5M2FNUZ:
    case TensorProto::FLOAT8E8M0:
      return 8;
    case TensorProto::UINT4:
    case TensorProto::INT4:
    case TensorProto::FLOAT4E2M1:
      return 4;
    case TensorProto::UINT2:
    case TensorProto::INT2:
      return 2;
    default:
      return 0;
  }
}

Result<std::uint64_t> tensor_data_bytes(const TensorProto& t) {
  const Shape shape(t.dims().begin(), t.dims().end());
  const std::int64_t count = element_count(shape);
  const int bits = onnx_type_bits(t.data_type());
  if (bits == 0 && t.data_type() != TensorProto::STRING)
    return DataLoss("tensor '{}' has {}, which this version does not know", t.name(),
                    onnx_type_name(t.data_type()));
  // 2^56 elements are more than any machine holds, and times 128 bits still fit uint64.
  if (count < 0 || count > (std::int64_t{1} << 56))
    return DataLoss("tensor '{}' has the impossible shape {}", t.name(), to_string(shape));
  return (static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(bits) + 7) / 8;
}

Result<Tensor> to_tensor(const TensorProto& proto, const std::shared_ptr<const void>& owner) {
  const DType dtype = from_onnx_type(proto.data_type());
  if (dtype == DType::kUndefined)
    return Unsupported("tensor '{}' is {}, which tenonnx does not read as values", proto.name(),
                       onnx_type_name(proto.data_type()));
  if (is_external(proto))
    return Unsupported("tensor '{}' lies in an external file; ask its model for it", proto.name());
  Shape shape(proto.dims().begin(), proto.dims().end());
  const std::int64_t count = element_count(shape);
  const Status mismatch = DataLoss("tensor '{}': its data does not fill {} {}", proto.name(),
                                   to_string(dtype), to_string(shape));
  if (count < 0) return mismatch;
  if (proto.has_raw_data()) {
    if (static_cast<std::uint64_t>(count) > proto.raw_data().size() ||
        static_cast<std::size_t>(count) * size_of(dtype) != proto.raw_data().size())
      return mismatch;
    if (owner) return Tensor::view(dtype, std::move(shape), proto.raw_data().data(), owner);
    Tensor out(dtype, std::move(shape));
    if (out.bytes() > 0) std::memcpy(out.mutable_raw(), proto.raw_data().data(), out.bytes());
    return out;
  }
  // The number of values bounds the allocation: a shape alone may claim anything.
  const int values = proto.float_data_size() + proto.double_data_size() + proto.int64_data_size() +
                     proto.uint64_data_size() + proto.int32_data_size();
  if (count > values) return mismatch;
  Tensor out(dtype, std::move(shape));
  if (!fill_from_fields(proto, out)) return mismatch;
  return out;
}

TensorProto to_tensor_proto(const Tensor& tensor, std::string_view name) {
  TensorProto proto;
  proto.set_name(std::string(name));
  proto.set_data_type(to_onnx_type(tensor.dtype()));
  for (std::int64_t d : tensor.shape()) proto.add_dims(d);
  proto.set_raw_data(tensor.raw() ? tensor.raw() : "", tensor.bytes());
  return proto;
}

bool is_external(const TensorProto& proto) {
  return proto.data_location() == TensorProto::EXTERNAL;
}

Result<ExternalRange> external_range(const TensorProto& proto) {
  ExternalRange range;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") range.location = entry.value();
    if (entry.key() == "offset") {
      TENONNX_ASSIGN_OR_RETURN(range.offset, parse_u64(entry.value(), proto, "offset"));
    }
    if (entry.key() == "length") {
      TENONNX_ASSIGN_OR_RETURN(range.length, parse_u64(entry.value(), proto, "length"));
      range.has_length = true;
    }
  }
  if (range.location.empty())
    return DataLoss("external data of '{}' has no location", proto.name());
  return range;
}

void set_external(TensorProto& proto, const ExternalRange& range) {
  proto.clear_raw_data();
  proto.clear_float_data();
  proto.clear_double_data();
  proto.clear_int32_data();
  proto.clear_int64_data();
  proto.clear_uint64_data();
  proto.clear_external_data();
  proto.set_data_location(TensorProto::EXTERNAL);
  const auto add = [&](const char* key, std::string value) {
    auto* entry = proto.add_external_data();
    entry->set_key(key);
    entry->set_value(std::move(value));
  };
  add("location", range.location);
  add("offset", std::to_string(range.offset));
  add("length", std::to_string(range.length));
}

TensorInfo to_info(std::string_view name, const onnx::TypeProto& type) {
  TensorInfo info{std::string(name), DType::kUndefined, {}, false};
  if (!type.has_tensor_type()) return info;
  info.dtype = from_onnx_type(type.tensor_type().elem_type());
  if (!type.tensor_type().has_shape()) return info;
  info.has_rank = true;
  for (const auto& d : type.tensor_type().shape().dim())
    info.shape.push_back(d.has_dim_value() && d.dim_value() >= 0 ? d.dim_value() : -1);
  return info;
}

TensorInfo to_info(const onnx::ValueInfoProto& value) {
  return to_info(value.name(), value.type());
}

onnx::ValueInfoProto to_value_info(const TensorInfo& info) {
  onnx::ValueInfoProto value;
  value.set_name(info.name);
  auto* type = value.mutable_type()->mutable_tensor_type();
  type->set_elem_type(to_onnx_type(info.dtype));
  if (!info.has_rank) return value;
  auto* shape = type->mutable_shape();
  for (std::int64_t d : info.shape) {
    auto* dim = shape->add_dim();
    if (d >= 0) dim->set_dim_value(d);
  }
  return value;
}

}  // namespace tenonnx
