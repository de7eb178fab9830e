// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Removing and making nodes: what several passes do to a graph.
#pragma once

#include <onnx/onnx_pb.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/graph.h"

namespace tenonnx {

// Removes the nodes for which `gone` holds; the order of the others stays.
template <typename Predicate>
void erase_nodes(onnx::GraphProto& graph, Predicate gone) {
  auto& nodes = *graph.mutable_node();
  int kept = 0;
  for (int i = 0; i < nodes.size(); ++i) {
    if (gone(nodes.Get(i))) continue;
    if (i != kept) nodes.SwapElements(i, kept);
    ++kept;
  }
  nodes.DeleteSubrange(kept, nodes.size() - kept);
}

// Removes nodes none of whose outputs is used, in `graph` and the bodies of its nodes; nodes must
// be in topological order. Returns their labels, last node first.
std::vector<std::string> remove_dead_nodes(onnx::GraphProto& graph);

// A node without a name: make_node("Mul", {"x", "scale"}, {"y"}).
onnx::NodeProto make_node(std::string_view op_type, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs);

void set_attribute(onnx::NodeProto& node, std::string_view name, std::int64_t value);
void set_attribute(onnx::NodeProto& node, std::string_view name, float value);
void set_attribute(onnx::NodeProto& node, std::string_view name, std::string_view value);
void set_attribute(onnx::NodeProto& node, std::string_view name,
                   const std::vector<std::int64_t>& values);
void remove_attribute(onnx::NodeProto& node, std::string_view name);

// Of the default domain, ai.onnx, and this operator.
bool is_op(const onnx::NodeProto& node, std::string_view op_type);

}  // namespace tenonnx
