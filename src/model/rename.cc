// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/rename.h"

#include <onnx/onnx_pb.h>

namespace tenonnx {
namespace {

void substitute(const TensorNames& names, std::string& name) {
  if (const auto found = names.find(name); found != names.end()) name = found->second;
}

void rename_body(onnx::GraphProto& body, TensorNames names) {
  for (const auto& input : body.input()) names.erase(input.name());
  for (const auto& tensor : body.initializer()) names.erase(tensor.name());
  for (const auto& node : body.node())
    for (const std::string& name : node.output()) names.erase(name);
  if (names.empty()) return;
  for (onnx::NodeProto& node : *body.mutable_node()) rename_reads(node, names);
  // A body may give out what it captures.
  for (auto& output : *body.mutable_output()) substitute(names, *output.mutable_name());
}

}  // namespace

void rename_reads(onnx::NodeProto& node, const TensorNames& names) {
  for (std::string& name : *node.mutable_input()) substitute(names, name);
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) rename_body(*attribute.mutable_g(), names);
    for (onnx::GraphProto& body : *attribute.mutable_graphs()) rename_body(body, names);
  }
}

void rename_node(onnx::NodeProto& node, const TensorNames& names) {
  rename_reads(node, names);
  for (std::string& name : *node.mutable_output()) substitute(names, name);
}

void rename_graph(onnx::GraphProto& graph, const TensorNames& names) {
  for (onnx::NodeProto& node : *graph.mutable_node()) rename_node(node, names);
  for (auto& output : *graph.mutable_output()) substitute(names, *output.mutable_name());
  for (auto& tensor : *graph.mutable_initializer()) substitute(names, *tensor.mutable_name());
  for (auto& tensor : *graph.mutable_sparse_initializer())
    substitute(names, *tensor.mutable_values()->mutable_name());
  for (auto& info : *graph.mutable_value_info()) substitute(names, *info.mutable_name());
}

}  // namespace tenonnx
