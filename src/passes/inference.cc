// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/inference.h"

#include <google/protobuf/arena.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <unordered_set>

#include "model/default_inputs.h"
#include "model/graph.h"
#include "model/guarded_schemas.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

// Inference reads values of small tensors alone: shapes, axes, pads, repeats.
constexpr std::size_t kLargestRead = 4096;

std::size_t stored_bytes(const onnx::TensorProto& t) {
  return t.raw_data().size() + 4 * static_cast<std::size_t>(t.float_data_size()) +
         8 * static_cast<std::size_t>(t.int64_data_size() + t.double_data_size()) +
         4 * static_cast<std::size_t>(t.int32_data_size());
}

void add_light(const onnx::TensorProto& from, onnx::TensorProto& to) {
  if (stored_bytes(from) <= kLargestRead && !is_external(from)) {
    to = from;
    return;
  }
  to.set_name(from.name());
  to.set_data_type(from.data_type());
  *to.mutable_dims() = from.dims();
}

void light_copy(const onnx::ModelProto& proto, onnx::ModelProto& copy) {
  copy.set_ir_version(proto.ir_version());
  *copy.mutable_opset_import() = proto.opset_import();
  *copy.mutable_functions() = proto.functions();
  const onnx::GraphProto& from = proto.graph();
  onnx::GraphProto& to = *copy.mutable_graph();
  to.set_name(from.name());
  *to.mutable_node() = from.node();
  *to.mutable_input() = from.input();
  *to.mutable_output() = from.output();
  // What is recorded of a tensor that inference can find itself may be that of the exporter's
  // example, static where the graph is dynamic: it is not taken. Other domains have nothing else.
  std::unordered_set<std::string_view> recorded_only;
  for (const onnx::NodeProto& node : from.node())
    if (!normalized_domain(node.domain()).empty())
      recorded_only.insert(node.output().begin(), node.output().end());
  for (const onnx::ValueInfoProto& info : from.value_info())
    if (recorded_only.contains(info.name())) *to.add_value_info() = info;
  // What a caller may override has a type, and no value that anything may be derived from.
  const auto overridable = default_inputs(proto);
  for (const onnx::TensorProto& t : from.initializer())
    if (!overridable.contains(t.name())) add_light(t, *to.add_initializer());
}

InferredType type_of(const onnx::TypeProto& type) {
  InferredType inferred;
  if (!type.has_tensor_type()) return inferred;
  inferred.onnx_type = type.tensor_type().elem_type();
  inferred.has_shape = type.tensor_type().has_shape();
  for (const auto& dim : type.tensor_type().shape().dim())
    inferred.shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
  return inferred;
}

InferredTypes types_of(const onnx::GraphProto& graph) {
  InferredTypes types;
  for (const onnx::TensorProto& t : graph.initializer()) {
    InferredType& inferred = types[t.name()];
    inferred.onnx_type = t.data_type();
    inferred.has_shape = true;
    inferred.shape.assign(t.dims().begin(), t.dims().end());
  }
  for (const auto* list : {&graph.value_info(), &graph.output(), &graph.input()})
    for (const onnx::ValueInfoProto& info : *list)
      if (info.has_type()) types.try_emplace(info.name(), type_of(info.type()));
  return types;
}

}  // namespace

bool InferredType::is_static() const {
  return has_shape && std::all_of(shape.begin(), shape.end(), [](auto dim) { return dim >= 0; });
}

Inference infer(const Model& model) {
  Inference inference;
  // In an arena the copy's thousands of messages come and go in blocks.
  google::protobuf::Arena arena;
  onnx::ModelProto& copy = *google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
  light_copy(model.proto(), copy);
  onnx::shape_inference::DataValueMap values;
  try {
    const onnx::ShapeInferenceOptions options(/*check_type=*/false, /*strict_mode=*/0,
                                              /*data_prop=*/true);
    onnx::shape_inference::InferShapes(copy, &guarded_schemas(), options, &values);
  } catch (const std::exception&) {
    // What was inferred up to here is in `copy`.
  }
  for_each_graph(
      static_cast<const onnx::GraphProto&>(copy.graph()),
      [&](const onnx::GraphProto& graph) { inference.graphs.push_back(types_of(graph)); });
  const InferredTypes& main = inference.graphs.front();
  for (const auto& [name, value] : values) {
    const auto type = main.find(name);
    if (type == main.end() || !type->second.is_static() || type->second.shape.size() > 1) continue;
    if (type->second.onnx_type != onnx::TensorProto::INT64 &&
        type->second.onnx_type != onnx::TensorProto::INT32)
      continue;
    if (element_count(type->second.shape) != value.dim_size()) continue;
    std::vector<std::int64_t> elements;
    for (const auto& dim : value.dim())
      if (dim.has_dim_value()) elements.push_back(dim.dim_value());
    if (static_cast<int>(elements.size()) == value.dim_size())
      inference.values.emplace(name, std::move(elements));
  }
  return inference;
}

}  // namespace tenonnx
