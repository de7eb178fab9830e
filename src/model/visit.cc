// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Walks over graphs and tensors. Protobuf limits the nesting of what it parses to 100 messages, so
// that recursion over bodies is shallow.
#include <onnx/onnx_pb.h>

#include "model/graph.h"

namespace tenonnx {
namespace {

template <typename Nodes, typename Fn>
void visit_bodies(Nodes& nodes, const Fn& fn) {
  for (auto& node : nodes) {
    if constexpr (std::is_const_v<Nodes>) {
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) for_each_graph(attribute.g(), fn);
        for (const auto& g : attribute.graphs()) for_each_graph(g, fn);
      }
    } else {
      for (auto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) for_each_graph(*attribute.mutable_g(), fn);
        for (auto& g : *attribute.mutable_graphs()) for_each_graph(g, fn);
      }
    }
  }
}

void visit_sparse(const onnx::SparseTensorProto& sparse,
                  const std::function<void(const onnx::TensorProto&)>& fn) {
  if (sparse.has_values()) fn(sparse.values());
  if (sparse.has_indices()) fn(sparse.indices());
}

template <typename Nodes>
void visit_attribute_tensors(const Nodes& nodes,
                             const std::function<void(const onnx::TensorProto&)>& fn) {
  for (const auto& node : nodes)
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_t()) fn(attribute.t());
      for (const auto& t : attribute.tensors()) fn(t);
      if (attribute.has_sparse_tensor()) visit_sparse(attribute.sparse_tensor(), fn);
      for (const auto& s : attribute.sparse_tensors()) visit_sparse(s, fn);
    }
}

}  // namespace

void for_each_graph(const onnx::GraphProto& graph,
                    const std::function<void(const onnx::GraphProto&)>& fn) {
  fn(graph);
  visit_bodies(graph.node(), fn);
}

void for_each_graph(onnx::GraphProto& graph, const std::function<void(onnx::GraphProto&)>& fn) {
  fn(graph);
  visit_bodies(*graph.mutable_node(), fn);
}

void for_each_tensor(const onnx::ModelProto& model,
                     const std::function<void(const onnx::TensorProto&)>& fn) {
  const auto visit_graph = [&](const onnx::GraphProto& graph) {
    for (const auto& t : graph.initializer()) fn(t);
    for (const auto& s : graph.sparse_initializer()) visit_sparse(s, fn);
    visit_attribute_tensors(graph.node(), fn);
  };
  for_each_graph(model.graph(), visit_graph);
  for (const auto& function : model.functions()) {
    visit_attribute_tensors(function.node(), fn);
    visit_bodies(function.node(), std::function<void(const onnx::GraphProto&)>(visit_graph));
  }
}

void for_each_tensor(onnx::ModelProto& model, const std::function<void(onnx::TensorProto&)>& fn) {
  // The model is not const, so neither are its tensors.
  for_each_tensor(std::as_const(model),
                  [&](const onnx::TensorProto& t) { fn(const_cast<onnx::TensorProto&>(t)); });
}

}  // namespace tenonnx
