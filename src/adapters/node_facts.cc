// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/node_facts.h"

#include <onnx/onnx_pb.h>

#include <optional>
#include <string_view>
#include <unordered_set>

#include "model/graph.h"
#include "model/tensor_proto.h"
#include "passes/inference.h"

namespace tenonnx {
namespace {

std::optional<std::string> attribute_text(const onnx::NodeProto& node, std::string_view name) {
  const onnx::AttributeProto* attribute = find_attribute(node, name);
  if (attribute == nullptr) return std::nullopt;
  if (attribute->type() == onnx::AttributeProto::STRING) return attribute->s();
  if (attribute->type() == onnx::AttributeProto::INT) return std::to_string(attribute->i());
  return "another type";
}

}  // namespace

std::vector<NodeFacts> node_facts(const Model& model) {
  const onnx::GraphProto& graph = model.proto().graph();
  const Inference inference = infer(model);
  std::unordered_set<std::string_view> constants;
  for (const onnx::TensorProto& initializer : graph.initializer())
    constants.insert(initializer.name());
  for (const onnx::NodeProto& node : graph.node())
    if (node.op_type() == "Constant") constants.insert(node.output().begin(), node.output().end());
  const auto operand = [&](const std::string& name) {
    OperandFacts facts;
    facts.name = name;
    facts.constant = constants.contains(name);
    const auto type = inference.graphs[0].find(name);
    if (type == inference.graphs[0].end()) return facts;
    facts.dtype = from_onnx_type(type->second.onnx_type);
    facts.has_rank = type->second.has_shape;
    facts.shape = type->second.shape;
    return facts;
  };
  std::vector<NodeFacts> out;
  for (const onnx::NodeProto& node : graph.node()) {
    NodeFacts& facts = out.emplace_back();
    facts.op_type = node.op_type();
    facts.domain = normalized_domain(node.domain());
    facts.opset = model.opset(facts.domain);
    for (const onnx::AttributeProto& attribute : node.attribute())
      facts.has_bodies |= attribute.has_g() || attribute.graphs_size() > 0;
    for (const std::string& name : node.input()) facts.inputs.push_back(operand(name));
    for (const std::string& name : node.output()) facts.outputs.push_back(operand(name));
    facts.attribute = [&node](std::string_view name) { return attribute_text(node, name); };
  }
  return out;
}

void name_nodes(Model& model) {
  std::unordered_set<std::string> names;
  for (const onnx::NodeProto& node : model.proto().graph().node()) names.insert(node.name());
  std::unordered_set<std::string> seen = {""};
  std::vector<int> nameless;
  for (int i = 0; i < model.proto().graph().node_size(); ++i)
    if (!seen.insert(model.proto().graph().node(i).name()).second) nameless.push_back(i);
  for (const int i : nameless) {
    onnx::NodeProto& node = *model.mutable_proto().mutable_graph()->mutable_node(i);
    std::string name = node.op_type();
    for (const std::string& output : node.output())
      if (name == node.op_type() && !output.empty()) name = output;
    while (!names.insert(name).second) name += "_";
    node.set_name(name);
  }
}

}  // namespace tenonnx
