// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "graph_to_model.h"

#include <onnx/onnx_pb.h>

#include <set>
#include <utility>
#include <vector>

#include "api.h"
#include "base/status.h"
#include "model/tensor_proto.h"
#include "ort/values.h"

namespace tenonnx::simnpu {
namespace {

// Values that several nodes read are described once.
struct Described {
  onnx::GraphProto* graph;
  std::set<std::string> names;
};

Result<onnx::TensorProto> tensor_proto(const Ort::ConstValue& value, const std::string& name) {
  const auto info = value.GetTensorTypeAndShapeInfo();
  const DType dtype = dtype_from_ort(info.GetElementType());
  if (dtype == DType::kUndefined)
    return Unsupported("constant '{}' holds ONNX element type {}, which is not handled", name,
                       static_cast<int>(info.GetElementType()));
  const Tensor tensor = Tensor::view(dtype, info.GetShape(), value.GetTensorRawData(), nullptr);
  return to_tensor_proto(tensor, name);
}

template <typename T>
Result<std::vector<T>> values_of(const Ort::ConstOpAttr& attribute) {
  std::vector<T> values;
  TENONNX_RETURN_IF_ERROR(from_ort(attribute.GetValueArray(values)));
  return values;
}

Status add_attribute(const Ort::ConstOpAttr& from, onnx::NodeProto& node) {
  onnx::AttributeProto& to = *node.add_attribute();
  to.set_name(from.GetName());
  switch (from.GetType()) {
    case ORT_OP_ATTR_INT: {
      std::int64_t value = 0;
      TENONNX_RETURN_IF_ERROR(from_ort(from.GetValue(value)));
      to.set_type(onnx::AttributeProto::INT);
      to.set_i(value);
      return {};
    }
    case ORT_OP_ATTR_FLOAT: {
      float value = 0;
      TENONNX_RETURN_IF_ERROR(from_ort(from.GetValue(value)));
      to.set_type(onnx::AttributeProto::FLOAT);
      to.set_f(value);
      return {};
    }
    case ORT_OP_ATTR_STRING: {
      std::string value;
      TENONNX_RETURN_IF_ERROR(from_ort(from.GetValue(value)));
      to.set_type(onnx::AttributeProto::STRING);
      to.set_s(value);
      return {};
    }
    case ORT_OP_ATTR_INTS: {
      TENONNX_ASSIGN_OR_RETURN(const auto values, values_of<std::int64_t>(from));
      to.set_type(onnx::AttributeProto::INTS);
      to.mutable_ints()->Add(values.begin(), values.end());
      return {};
    }
    case ORT_OP_ATTR_FLOATS: {
      TENONNX_ASSIGN_OR_RETURN(const auto values, values_of<float>(from));
      to.set_type(onnx::AttributeProto::FLOATS);
      to.mutable_floats()->Add(values.begin(), values.end());
      return {};
    }
    case ORT_OP_ATTR_STRINGS: {
      TENONNX_ASSIGN_OR_RETURN(const auto values, values_of<std::string>(from));
      to.set_type(onnx::AttributeProto::STRINGS);
      for (const std::string& value : values) to.add_strings(value);
      return {};
    }
    case ORT_OP_ATTR_TENSOR: {
      Ort::Value value{nullptr};
      TENONNX_RETURN_IF_ERROR(from_ort(from.GetTensorAttributeAsOrtValue(value)));
      TENONNX_ASSIGN_OR_RETURN(*to.mutable_t(), tensor_proto(value.GetConst(), ""));
      to.set_type(onnx::AttributeProto::TENSOR);
      return {};
    }
    default:
      return Unsupported("attribute '{}' of node '{}' has a type that is not handled", to.name(),
                         node.name());
  }
}

Status describe_value(const Ort::ConstValueInfo& value, Described& described) {
  const std::string name = name_of(value);
  if (name.empty() || !described.names.insert(name).second) return {};
  const TensorInfo info = info_of(value);
  if (info.dtype != DType::kUndefined) *described.graph->add_value_info() = to_value_info(info);
  return {};
}

Status add_node(const Ort::ConstNode& from, Described& described) {
  onnx::NodeProto& to = *described.graph->add_node();
  to.set_name(from.GetName());
  to.set_op_type(from.GetOperatorType());
  to.set_domain(from.GetDomain());
  if (!from.GetSubgraphs().empty())
    return Unsupported("{} '{}' holds other graphs", to.op_type(), to.name());
  for (const auto& value : from.GetInputs()) to.add_input(name_of(value));
  for (const auto& value : from.GetOutputs()) {
    to.add_output(name_of(value));
    TENONNX_RETURN_IF_ERROR(describe_value(value, described));
  }
  for (const auto& attribute : from.GetAttributes())
    TENONNX_RETURN_IF_ERROR(add_attribute(attribute, to));
  return {};
}

}  // namespace

std::string name_of(const Ort::ConstValueInfo& value) {
  return static_cast<const OrtValueInfo*>(value) != nullptr ? value.GetName() : std::string();
}

TensorInfo info_of(const Ort::ConstValueInfo& value) {
  TensorInfo info{name_of(value), DType::kUndefined, {}, false};
  const auto type = value.TypeInfo();
  if (type.GetONNXType() != ONNX_TYPE_TENSOR) return info;
  const auto tensor = type.GetTensorTypeAndShapeInfo();
  info.dtype = dtype_from_ort(tensor.GetElementType());
  info.has_rank = tensor.HasShape();
  if (info.has_rank) info.shape = tensor.GetShape();
  return info;
}

Result<Model> graph_to_model(const Ort::ConstGraph& graph) {
  onnx::ModelProto proto;
  proto.set_ir_version(graph.GetOnnxIRVersion());
  for (const auto& opset : graph.GetOperatorSets()) {
    onnx::OperatorSetIdProto& import = *proto.add_opset_import();
    import.set_domain(opset.domain);
    import.set_version(opset.version);
  }
  onnx::GraphProto& to = *proto.mutable_graph();
  to.set_name(graph.GetName().empty() ? "partition" : graph.GetName());
  Described described{&to, {}};
  for (const auto& value : graph.GetInitializers()) {
    const std::string name = name_of(value);
    if (!value.IsConstantInitializer() || !described.names.insert(name).second) continue;
    Ort::ConstValue constant{nullptr};
    TENONNX_RETURN_IF_ERROR(from_ort(value.GetInitializer(constant)));
    TENONNX_ASSIGN_OR_RETURN(*to.add_initializer(), tensor_proto(constant, name));
  }
  for (const auto& value : graph.GetInputs()) {
    if (!described.names.insert(name_of(value)).second) continue;
    *to.add_input() = to_value_info(info_of(value));
  }
  for (const auto& value : graph.GetOutputs()) {
    described.names.insert(name_of(value));
    *to.add_output() = to_value_info(info_of(value));
  }
  for (const auto& node : graph.GetNodes()) TENONNX_RETURN_IF_ERROR(add_node(node, described));
  return Model::from_proto(std::move(proto), {}, "partition");
}

}  // namespace tenonnx::simnpu
