// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/inline_branch.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/graph.h"

namespace tenonnx {
namespace {

// How often each tensor name is defined in the whole model.
std::map<std::string, int> definitions(const onnx::ModelProto& model) {
  std::map<std::string, int> count;
  for_each_graph(model.graph(), [&](const onnx::GraphProto& graph) {
    std::set<std::string> own;  // an initializer may be an input too
    for (const auto& input : graph.input()) own.insert(input.name());
    for (const auto& t : graph.initializer()) own.insert(t.name());
    for (const auto& t : graph.sparse_initializer()) own.insert(t.values().name());
    for (const auto& node : graph.node()) own.insert(node.output().begin(), node.output().end());
    for (const std::string& name : own) ++count[name];
  });
  return count;
}

void inline_one(const onnx::NodeProto& node, onnx::GraphProto branch,
                const std::map<std::string, int>& defined, UniqueNames& names,
                onnx::GraphProto& graph, std::vector<onnx::NodeProto>& nodes) {
  std::set<std::string> made;  // by nodes of the branch, and free to take another name
  std::vector<std::string> own;
  for (const auto& t : branch.initializer()) own.push_back(t.name());
  for (const auto& inner : branch.node())
    for (const std::string& name : inner.output()) {
      if (name.empty()) continue;
      own.push_back(name);
      made.insert(name);
    }
  std::vector<onnx::NodeProto> copies;
  for (int i = 0; i < branch.output_size() && i < node.output_size(); ++i) {
    const std::string& to = node.output(i);
    const std::string from = branch.output(i).name();
    if (to.empty()) continue;
    if (made.erase(from) > 0) {
      rename_tensor(branch, from, to);
      continue;
    }
    // A weight, a tensor of an outer graph, or one that is an output twice.
    onnx::NodeProto copy;
    copy.set_op_type("Identity");
    copy.set_name(names.make(node.name().empty() ? to + "/Identity" : node.name() + "/Identity"));
    copy.add_input(from);
    copy.add_output(to);
    copies.push_back(std::move(copy));
  }
  for (const std::string& name : own) {
    const auto count = defined.find(name);
    // What became an output of the If has its new name already.
    const bool renamed = !made.contains(name) &&
                         std::none_of(branch.initializer().begin(), branch.initializer().end(),
                                      [&](const auto& t) { return t.name() == name; });
    if (renamed || count == defined.end() || count->second < 2) continue;
    const std::string to = names.make(name);
    rename_tensor(branch, name, to);
    for (onnx::NodeProto& copy : copies)
      if (copy.input(0) == name) copy.set_input(0, to);
  }
  for (auto& t : *branch.mutable_initializer()) *graph.add_initializer() = std::move(t);
  for (auto& t : *branch.mutable_sparse_initializer())
    *graph.add_sparse_initializer() = std::move(t);
  for (auto& info : *branch.mutable_value_info()) *graph.add_value_info() = std::move(info);
  for (auto& inner : *branch.mutable_node()) nodes.push_back(std::move(inner));
  for (auto& copy : copies) nodes.push_back(std::move(copy));
}

}  // namespace

int inline_branches(onnx::ModelProto& model, onnx::GraphProto& graph,
                    const std::function<std::optional<bool>(std::string_view)>& condition) {
  const auto taken = [&](const onnx::NodeProto& node) -> const onnx::GraphProto* {
    if (node.op_type() != "If" || !normalized_domain(node.domain()).empty()) return nullptr;
    if (node.input_size() != 1) return nullptr;
    const std::optional<bool> value = condition(node.input(0));
    if (!value) return nullptr;
    const onnx::AttributeProto* branch =
        find_attribute(node, *value ? "then_branch" : "else_branch");
    return branch != nullptr && branch->has_g() && branch->g().input_size() == 0 ? &branch->g()
                                                                                 : nullptr;
  };
  int inlined = 0;
  for (const onnx::NodeProto& node : graph.node()) inlined += taken(node) != nullptr;
  if (inlined == 0) return 0;
  const auto defined = definitions(model);
  UniqueNames names(model);
  std::vector<onnx::NodeProto> nodes;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> old;
  old.Swap(graph.mutable_node());
  for (onnx::NodeProto& node : old) {
    if (const onnx::GraphProto* branch = taken(node))
      inline_one(node, *branch, defined, names, graph, nodes);
    else
      nodes.push_back(std::move(node));
  }
  for (onnx::NodeProto& node : nodes) *graph.add_node() = std::move(node);
  return inlined;
}

}  // namespace tenonnx
