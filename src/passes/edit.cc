// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/edit.h"

#include <unordered_set>

#include "passes/fold_rules.h"

namespace tenonnx {
namespace {

onnx::AttributeProto& attribute_to_set(onnx::NodeProto& node, std::string_view name,
                                       onnx::AttributeProto::AttributeType type) {
  remove_attribute(node, name);
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(std::string(name));
  attribute.set_type(type);
  return attribute;
}

}  // namespace

std::vector<std::string> remove_dead_nodes(onnx::GraphProto& graph) {
  std::vector<std::string> labels;
  std::unordered_set<std::string_view> used;
  for (const onnx::ValueInfoProto& output : graph.output()) used.insert(output.name());
  std::unordered_set<const onnx::NodeProto*> dead;
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    onnx::NodeProto& node = *graph.mutable_node(i);
    bool live = false;
    for (const std::string& name : node.output()) live |= used.contains(name);
    if (!live) {
      dead.insert(&node);
      labels.push_back(node_label(node));
      continue;
    }
    const auto clean = [&](onnx::GraphProto& body) {
      for (std::string& label : remove_dead_nodes(body)) labels.push_back(std::move(label));
    };
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) clean(*attribute.mutable_g());
      for (onnx::GraphProto& body : *attribute.mutable_graphs()) clean(body);
    }
    for (const std::string_view name : all_inputs(node)) used.insert(name);
  }
  erase_nodes(graph, [&](const onnx::NodeProto& node) { return dead.contains(&node); });
  return labels;
}

onnx::NodeProto make_node(std::string_view op_type, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs) {
  onnx::NodeProto node;
  node.set_op_type(std::string(op_type));
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

void set_attribute(onnx::NodeProto& node, std::string_view name, std::int64_t value) {
  attribute_to_set(node, name, onnx::AttributeProto::INT).set_i(value);
}

void set_attribute(onnx::NodeProto& node, std::string_view name, float value) {
  attribute_to_set(node, name, onnx::AttributeProto::FLOAT).set_f(value);
}

void set_attribute(onnx::NodeProto& node, std::string_view name, std::string_view value) {
  attribute_to_set(node, name, onnx::AttributeProto::STRING).set_s(std::string(value));
}

void set_attribute(onnx::NodeProto& node, std::string_view name,
                   const std::vector<std::int64_t>& values) {
  onnx::AttributeProto& attribute = attribute_to_set(node, name, onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}

void remove_attribute(onnx::NodeProto& node, std::string_view name) {
  for (int i = node.attribute_size() - 1; i >= 0; --i)
    if (node.attribute(i).name() == name) node.mutable_attribute()->DeleteSubrange(i, 1);
}

bool is_op(const onnx::NodeProto& node, std::string_view op_type) {
  return node.op_type() == op_type && normalized_domain(node.domain()).empty();
}

}  // namespace tenonnx
