// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/shapes.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <unordered_set>

#include "base/log.h"
#include "base/status.h"
#include "model/default_inputs.h"
#include "model/graph.h"
#include "model/guarded_schemas.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

// Targets of Reshape, Expand, Slice and the like are far below; weights are far above.
constexpr std::uint64_t kMaxCopied = 4096;

onnx::ValueInfoProto typed_input(const onnx::TensorProto& t, const std::string& name) {
  onnx::ValueInfoProto value;
  value.set_name(name);
  auto* type = value.mutable_type()->mutable_tensor_type();
  type->set_elem_type(t.data_type());
  auto* shape = type->mutable_shape();
  for (std::int64_t d : t.dims()) shape->add_dim()->set_dim_value(d);
  return value;
}

bool is_small(const onnx::TensorProto& t) {
  const auto bytes = tensor_data_bytes(t);
  return bytes.ok() && *bytes <= kMaxCopied && t.data_type() != onnx::TensorProto::STRING;
}

// Which nodes lie before `tensors`; bodies' captures count.
std::vector<bool> nodes_before(const onnx::GraphProto& graph,
                               const std::vector<std::string>& tensors) {
  const GraphIndex index(graph);
  std::vector<bool> needed(static_cast<std::size_t>(graph.node_size()), false);
  std::vector<std::string_view> stack(tensors.begin(), tensors.end());
  while (!stack.empty()) {
    const Value* value = index.find(stack.back());
    stack.pop_back();
    if (value == nullptr || value->producer < 0) continue;
    const auto i = static_cast<std::size_t>(value->producer);
    if (needed[i]) continue;
    needed[i] = true;
    for (const auto& input : graph.node(value->producer).input()) stack.push_back(input);
    for (std::string_view name : index.captures(value->producer)) stack.push_back(name);
  }
  return needed;
}

// A copy of the model for inference. What is large becomes an input of the same type: inference
// needs its shape only. With `needed`, only those nodes and what they use.
onnx::ModelProto skeleton_of(const Model& model, const std::vector<bool>* needed = nullptr) {
  const onnx::ModelProto& source = model.proto();
  const onnx::GraphProto& from = source.graph();
  onnx::ModelProto out;
  out.set_ir_version(source.ir_version());
  *out.mutable_opset_import() = source.opset_import();
  *out.mutable_functions() = source.functions();
  onnx::GraphProto& to = *out.mutable_graph();
  to.set_name(from.name());
  *to.mutable_input() = from.input();
  *to.mutable_output() = from.output();
  *to.mutable_value_info() = from.value_info();
  std::unordered_set<std::string_view> used;
  if (needed != nullptr)
    for (int i = 0; i < from.node_size(); ++i) {
      if (!(*needed)[static_cast<std::size_t>(i)]) continue;
      used.insert(from.node(i).input().begin(), from.node(i).input().end());
      for (std::string_view name : captured_names(from.node(i))) used.insert(name);
    }
  const auto overridable = default_inputs(source);
  std::unordered_set<std::string_view> inputs;
  for (const auto& input : from.input()) inputs.insert(input.name());
  for (const auto& t : from.initializer()) {
    if (needed != nullptr && !used.contains(t.name())) continue;
    if (overridable.contains(t.name())) continue;  // an input, with a type and no value
    if (!is_small(t)) {
      if (!inputs.contains(t.name())) *to.add_input() = typed_input(t, t.name());
    } else if (!is_external(t)) {
      *to.add_initializer() = t;
    } else if (const auto values = model.tensor(t); values.ok()) {
      *to.add_initializer() = to_tensor_proto(*values, t.name());
    } else if (!inputs.contains(t.name())) {
      *to.add_input() = typed_input(t, t.name());
    }
  }
  for (int i = 0; i < from.node_size(); ++i) {
    if (needed != nullptr && !(*needed)[static_cast<std::size_t>(i)]) continue;
    const auto& node = from.node(i);
    const auto* value = node.op_type() == "Constant" ? find_attribute(node, "value") : nullptr;
    if (value != nullptr && value->has_t() && node.output_size() == 1 &&
        (!is_small(value->t()) || is_external(value->t())))
      *to.add_input() = typed_input(value->t(), node.output(0));
    else
      *to.add_node() = node;
  }
  return out;
}

void infer(onnx::ModelProto& skeleton) {
  try {
    // Not strict: a node that cannot be inferred ends it there and no more.
    const onnx::ShapeInferenceOptions options(/*check_type_val=*/false, /*strict_mode_val=*/0,
                                              /*data_prop_val=*/true);
    onnx::shape_inference::InferShapes(skeleton, &guarded_schemas(), options);
  } catch (const std::exception& error) {
    log_debug("shape inference ended early: {}", error.what());
  }
}

TensorInfos infer_and_collect(onnx::ModelProto skeleton) {
  TensorInfos out;
  infer(skeleton);
  const auto record = [&](const onnx::ValueInfoProto& value) {
    TensorInfo info = to_info(value);
    if (info.dtype != DType::kUndefined) out.insert_or_assign(value.name(), std::move(info));
  };
  const onnx::GraphProto& graph = skeleton.graph();
  for (const auto& value : graph.value_info()) record(value);
  for (const auto& value : graph.output()) record(value);
  for (const auto& value : graph.input()) record(value);
  for (const auto& t : graph.initializer()) record(typed_input(t, t.name()));
  return out;
}

}  // namespace

TensorInfos infer_shapes(const Model& model) {
  if (!model.proto().has_graph()) return {};
  return infer_and_collect(skeleton_of(model));
}

TensorInfos infer_shapes(const Model& model, const std::vector<std::string>& tensors) {
  if (!model.proto().has_graph()) return {};
  const std::vector<bool> needed = nodes_before(model.proto().graph(), tensors);
  return infer_and_collect(skeleton_of(model, &needed));
}

Status annotate_shapes(Model& model) {
  if (!model.proto().has_graph()) return FailedPrecondition("the model has no graph");
  onnx::ModelProto skeleton = skeleton_of(model);
  infer(skeleton);
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  graph.mutable_value_info()->Swap(skeleton.mutable_graph()->mutable_value_info());
  for (auto& output : *graph.mutable_output())
    for (const auto& inferred : skeleton.graph().output())
      if (inferred.name() == output.name()) *output.mutable_type() = inferred.type();
  return {};
}

}  // namespace tenonnx
