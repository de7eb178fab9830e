// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/rename.h"

#include <onnx/onnx_pb.h>

namespace tenonnx {
namespace {

void apply(const TensorNames& names, std::string& name) {
  if (const auto found = names.find(name); found != names.end()) name = found->second;
}

void rename_body(onnx::GraphProto& body, const TensorNames& names) {
  for (onnx::NodeProto& node : *body.mutable_node()) rename_reads(node, names);
  // A body may give out what it captures.
  for (auto& output : *body.mutable_output()) apply(names, *output.mutable_name());
}

}  // namespace

void rename_reads(onnx::NodeProto& node, const TensorNames& names) {
  for (std::string& name : *node.mutable_input()) apply(names, name);
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) rename_body(*attribute.mutable_g(), names);
    for (onnx::GraphProto& body : *attribute.mutable_graphs()) rename_body(body, names);
  }
}

void rename_node(onnx::NodeProto& node, const TensorNames& names) {
  rename_reads(node, names);
  for (std::string& name : *node.mutable_output()) apply(names, name);
}

}  // namespace tenonnx
