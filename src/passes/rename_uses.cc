// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/rename_uses.h"

#include <onnx/onnx_pb.h>

namespace tenonnx {
namespace {

using Names = std::unordered_map<std::string, std::string>;

void rename_in_body(onnx::GraphProto& body, Names names) {
  for (const auto& input : body.input()) names.erase(input.name());
  for (const auto& tensor : body.initializer()) names.erase(tensor.name());
  for (const auto& node : body.node())
    for (const std::string& name : node.output()) names.erase(name);
  if (names.empty()) return;
  for (auto& node : *body.mutable_node()) rename_uses(node, names);
  for (auto& output : *body.mutable_output())
    if (const auto it = names.find(output.name()); it != names.end())
      *output.mutable_name() = it->second;
}

}  // namespace

void rename_uses(onnx::NodeProto& node, const Names& names) {
  for (std::string& name : *node.mutable_input())
    if (const auto it = names.find(name); it != names.end()) name = it->second;
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) rename_in_body(*attribute.mutable_g(), names);
    for (auto& body : *attribute.mutable_graphs()) rename_in_body(body, names);
  }
}

}  // namespace tenonnx
