// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/joined_graph.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <utility>

#include "adapters/differing_op.h"
#include "base/status.h"
#include "model/rename.h"
#include "model/tensor_proto.h"
#include "passes/edit.h"

namespace tenonnx {

JoinedGraph::JoinedGraph(const Model& model)
    : model_(model),
      index_(model.proto().graph()),
      proto_(std::make_unique<onnx::ModelProto>(model.proto())),
      fresh_(model.proto()) {
  for (const auto& output : proto_->graph().output()) given_.insert(output.name());
}

JoinedGraph::~JoinedGraph() = default;

std::string JoinedGraph::add_node(onnx::NodeProto node) {
  std::string output = node.output(0);
  *proto_->mutable_graph()->add_node() = std::move(node);
  return output;
}

void JoinedGraph::give(const std::string& tensor) {
  if (given_.insert(tensor).second) proto_->mutable_graph()->add_output()->set_name(tensor);
}

std::string JoinedGraph::add_last(onnx::NodeProto node, const std::vector<std::string>& when) {
  int after = -1;
  for (const std::string& tensor : when)
    if (const Value* value = index_.find(tensor); value != nullptr)
      after = std::max(after, value->producer);
  std::string output = node.output(0);
  last_.emplace(after, std::move(node));
  return output;
}

std::string JoinedGraph::give_shape(const std::string& tensor) {
  return add_last(make_node("Shape", {tensor}, {fresh_.make(tensor + "_shape")}), {tensor});
}

std::string JoinedGraph::first(const std::string& tensor, std::int64_t axis, std::int64_t count) {
  const auto integer = [&](const char* what, std::int64_t value) {
    const std::string name = fresh_.make(tensor + what);
    *proto_->mutable_graph()->add_initializer() =
        to_tensor_proto(Tensor::from<std::int64_t>(DType::kInt64, {1}, {value}), name);
    return name;
  };
  return add_node(make_node(
      "Slice", {tensor, integer("_begin", 0), integer("_end", count), integer("_axis", axis)},
      {fresh_.make(tensor + "_first")}));
}

std::map<std::string, std::string> JoinedGraph::add(
    const Model& part, const std::function<const std::string&(const std::string&)>& tensor_of) {
  onnx::GraphProto graph = part.proto().graph();
  const std::string prefix = "part/";
  TensorNames names;
  for (const auto& input : graph.input()) names[input.name()] = tensor_of(input.name());
  const auto name_anew = [&](const std::string& name) {
    if (!name.empty()) names.try_emplace(name, fresh_.make(prefix + name));
  };
  for (const auto& tensor : graph.initializer()) name_anew(tensor.name());
  for (const auto& sparse : graph.sparse_initializer()) name_anew(sparse.values().name());
  for (const auto& node : graph.node())
    for (const std::string& output : node.output()) name_anew(output);
  std::map<std::string, std::string> outputs;
  for (const auto& output : graph.output()) outputs[output.name()] = names.at(output.name());
  rename_graph(graph, names);
  onnx::GraphProto& to = *proto_->mutable_graph();
  for (auto& node : *graph.mutable_node()) {
    node.set_name(fresh_.make(prefix + node.name()));
    *to.add_node() = std::move(node);
  }
  for (auto& tensor : *graph.mutable_initializer()) *to.add_initializer() = std::move(tensor);
  for (auto& tensor : *graph.mutable_sparse_initializer())
    *to.add_sparse_initializer() = std::move(tensor);
  parts_.adopt_weights(part);
  return outputs;
}

std::string JoinedGraph::compare(const Comparison& comparison) {
  std::vector<std::string> inputs = comparison.a;
  for (const auto* list : {&comparison.b, &comparison.more})
    inputs.insert(inputs.end(), list->begin(), list->end());
  onnx::NodeProto node =
      make_node(kDiffering, inputs, {fresh_.make(comparison.b.front() + "_differing")});
  node.set_domain(kProofDomain);
  set_attribute(node, "pairs", static_cast<std::int64_t>(comparison.a.size()));
  set_attribute(node, "part", comparison.part);
  return add_last(std::move(node), comparison.when);
}

std::string JoinedGraph::beyond(const std::vector<std::string>& tensors) {
  onnx::NodeProto node = make_node(kBeyond, tensors, {fresh_.make(tensors.front() + "_beyond")});
  node.set_domain(kProofDomain);
  return add_last(std::move(node), tensors);
}

Model JoinedGraph::finish() {
  auto* domain = proto_->add_opset_import();
  domain->set_domain(kProofDomain);
  domain->set_version(1);
  // ONNX Runtime 1.29 walks back from the last of the nodes that nothing uses. With them in the
  // opposite order each runs as soon as its tensors are made, and these are freed: of DEIMv2-S a
  // run takes 40 MB so, and 300 MB where the comparisons come last.
  for (auto it = last_.rbegin(); it != last_.rend(); ++it) give(add_node(std::move(it->second)));
  last_.clear();
  Model made = model_.with_proto(std::move(proto_));
  made.adopt_weights(parts_);
  return made;
}

}  // namespace tenonnx
