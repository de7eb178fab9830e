// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/joint_graph.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/status.h"
#include "model/graph.h"
#include "passes/edit.h"
#include "passes/region_diff.h"
#include "passes/rename_uses.h"

namespace tenonnx {
namespace {

// Adds what `before` speaks to `proto`, a copy of the graph after: opsets and functions. False where
// the two do not agree.
bool add_language(const onnx::ModelProto& before, onnx::ModelProto& proto) {
  proto.set_ir_version(std::max(before.ir_version(), proto.ir_version()));
  for (const auto& import : before.opset_import())
    if (!import_opset(proto, normalized_domain(import.domain()), import.version()).ok())
      return false;
  std::map<std::pair<std::string, std::string>, std::string> known;
  for (const auto& function : proto.functions())
    known[{function.domain(), function.name()}] = function.SerializeAsString();
  for (const auto& function : before.functions()) {
    const auto it = known.find({function.domain(), function.name()});
    if (it == known.end())
      *proto.add_functions() = function;
    else if (it->second != function.SerializeAsString())
      return false;
  }
  return true;
}

class Joiner {
 public:
  Joiner(const Model& before, const Model& after, const std::map<std::string, std::string>& renamed,
         std::unique_ptr<onnx::ModelProto> proto)
      : before_(before),
        after_(after),
        renamed_(renamed),
        b_(before.proto().graph()),
        a_(after.proto().graph()),
        fresh_(after.proto()),
        proto_(std::move(proto)) {}

  Result<JointGraph> run(const GraphDiff& diff) {
    JointGraph joint;
    joint.shared = diff.unchanged;
    for (const ChangedRegion& region : diff.regions)
      for (const int i : region.before) {
        add_node(i);
        ++joint.only_before;
      }
    for (const auto& output : graph().output()) outputs_.insert(output.name());
    for (const ChangedRegion& region : diff.regions)
      for (const RegionTensor& output : region.outputs)
        joint.pairs.push_back({output.before, output_of(was(output.before), output.before),
                               output_of(output.after, output.after)});
    TENONNX_RETURN_IF_ERROR(sort_nodes(graph()).status());
    joint.model = after_.with_proto(std::move(proto_));
    return joint;
  }

 private:
  onnx::GraphProto& graph() { return *proto_->mutable_graph(); }

  // The same value's name in the graph after; empty where it has none.
  std::string_view image(std::string_view name) const {
    const auto it = renamed_.find(std::string(name));
    const Value* found = a_.find(it == renamed_.end() ? name : std::string_view(it->second));
    return found == nullptr ? std::string_view() : found->name;
  }

  // What a node of the graph before makes, by the name that it has in here.
  const std::string& own(std::string_view name) {
    const auto [it, inserted] = own_.try_emplace(std::string(name));
    if (inserted) it->second = fresh_.make(std::string(name) + "_before");
    return it->second;
  }

  const std::string& constant(const Value& value) {
    const auto [it, inserted] = constants_.try_emplace(std::string(value.name));
    if (!inserted) return it->second;
    const Value* other = a_.find(image(value.name));
    if (value.initializer != nullptr && other != nullptr && other->initializer != nullptr &&
        same_constant(before_, *value.initializer, after_, *other->initializer))
      return it->second = std::string(other->name);
    it->second = fresh_.make(std::string(value.name) + "_before");
    if (value.initializer != nullptr) {
      onnx::TensorProto& copy = *graph().add_initializer();
      copy = *value.initializer;
      copy.set_name(it->second);
      return it->second;
    }
    for (const auto& sparse : before_.proto().graph().sparse_initializer()) {
      if (sparse.values().name() != value.name) continue;
      auto& copy = *graph().add_sparse_initializer();
      copy = sparse;
      copy.mutable_values()->set_name(it->second);
    }
    return it->second;
  }

  // What a node of the graph before takes: what the graph after has of it, else its own.
  std::string taken(std::string_view name) {
    const Value* value = b_.find(name);
    if (value != nullptr && value->is_initializer() && !value->is_input) return constant(*value);
    const std::string_view there = image(name);
    return there.empty() ? own(name) : std::string(there);
  }

  void add_node(int i) {
    onnx::NodeProto& node = *graph().add_node();
    node = before_.proto().graph().node(i);
    node.clear_doc_string();
    node.clear_metadata_props();
    if (!node.name().empty()) node.set_name(fresh_.make(node.name() + "_before"));
    std::unordered_map<std::string, std::string> names;
    for (const std::string& name : node.input())
      if (!name.empty()) names[name] = taken(name);
    for (const std::string_view name : b_.captures(i)) names[std::string(name)] = taken(name);
    rename_uses(node, names);
    for (std::string& name : *node.mutable_output())
      if (!name.empty()) name = own(name);
  }

  // The value of a tensor in the graph before, in here.
  std::string was(const std::string& name) {
    const auto it = own_.find(name);
    return it == own_.end() ? taken(name) : it->second;
  }

  // The name of an output that holds `tensor`: itself where a node makes it.
  std::string output_of(const std::string& tensor, const std::string& base) {
    const Value* value = a_.find(tensor);
    const bool computed = value != nullptr ? value->producer >= 0 : !is_copied(tensor);
    std::string name = tensor;
    if (!computed) {
      const auto [it, inserted] = handed_on_.try_emplace(tensor);
      if (inserted) {
        it->second = fresh_.make(base + "_handed_on");
        *graph().add_node() = make_node("Identity", {tensor}, {it->second});
      }
      name = it->second;
    }
    if (outputs_.insert(name).second) graph().add_output()->set_name(name);
    return name;
  }

  bool is_copied(const std::string& tensor) const {
    for (const auto& [name, copy] : constants_)
      if (copy == tensor) return true;
    return false;
  }

  const Model& before_;
  const Model& after_;
  const std::map<std::string, std::string>& renamed_;
  const GraphIndex b_, a_;
  UniqueNames fresh_;
  std::unique_ptr<onnx::ModelProto> proto_;
  std::unordered_map<std::string, std::string> own_, constants_, handed_on_;
  std::set<std::string> outputs_;
};

}  // namespace

Result<std::optional<JointGraph>> join_graphs(const Model& before, const Model& after,
                                              const std::map<std::string, std::string>& renamed) {
  auto proto = std::make_unique<onnx::ModelProto>(after.proto());
  if (!add_language(before.proto(), *proto)) return std::optional<JointGraph>();
  const auto diff = diff_graphs(before, after, renamed, "(all)");
  if (!diff.ok()) return std::optional<JointGraph>();
  TENONNX_ASSIGN_OR_RETURN(JointGraph joint, Joiner(before, after, renamed, std::move(proto)).run(*diff));
  return std::optional<JointGraph>(std::move(joint));
}

}  // namespace tenonnx
