// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fold_constants: computes what follows from constants and static shapes.
//
// before: Shape(x) -> Gather(0) -> Unsqueeze -> Concat(.., -1) -> Reshape(y, .)   x: [1,256,20,20]
// after:  Reshape(y, [1,-1])
//
// - Shape, Size and what onnx's data propagation derives from them (Gather, Concat, Add, ... of
//   dimensions) become constants where the dimensions are static; of a partly dynamic shape the
//   elements that are known.
// - A node whose inputs are all constant is evaluated by ONNX Runtime, optimisation disabled and
//   weights unpacked, all such nodes of a graph in one session. Rounds repeat until nothing
//   changes, as a Reshape with a new constant makes further shapes static.
// - Constant nodes become initializers of the same name. A value that is a graph output stays a
//   Constant node, so that the output keeps a producer.
// - Nodes and initializers that nothing uses go.
// - Bodies of If/Loop/Scan are folded too; constants of outer graphs count there. An If whose
//   condition is constant is replaced by the nodes of its branch.
//
// Names of tensors and remaining nodes stay. Class bitwise: the values are those of the kernels
// that would have run. ONNX Runtime packs the weights of a MatMul where they are constant, and then
// adds in another order: a folded weight or a folded MatMul moves results by roundings unless
// packing is off (session.disable_prepacking), as it is in proofs and in ONNX Runtime's own
// folding.
//
// Options: max_bytes (1 MiB): a tensor may exceed the constants that it is made of by so much.
// Refuses, with the node: growth beyond that, outputs whose size is unknown, and what ONNX Runtime
// refuses. Never folded: random operators, Dropout in training mode, QuantizeLinear and
// DequantizeLinear (a quantized weight would become float), operators outside ai.onnx, strings.
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/status.h"
#include "model/graph.h"
#include "model/tensor_proto.h"
#include "passes/edit.h"
#include "passes/fold_region.h"
#include "passes/fold_rules.h"
#include "passes/graph_facts.h"
#include "passes/inference.h"
#include "passes/inline_branch.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {
namespace {

constexpr std::int64_t kDefaultMaxBytes = 1 << 20;
// A round makes at least one more shape static; the raw export of the example needs 5.
constexpr int kMaxRounds = 200;

Tensor integers(const std::vector<std::int64_t>& values, const InferredType& type) {
  if (type.onnx_type == onnx::TensorProto::INT64)
    return Tensor::from<std::int64_t>(DType::kInt64, type.shape, values);
  return Tensor::from<std::int32_t>(DType::kInt32, type.shape,
                                    std::vector<std::int32_t>(values.begin(), values.end()));
}

// One graph, with the constants that it sees.
struct Scope {
  onnx::GraphProto* graph = nullptr;
  const InferredTypes* types = nullptr;
  const Scope* outer = nullptr;
  std::unordered_map<std::string_view, const onnx::TensorProto*> constants;
  std::unordered_set<std::string_view> defined;  // by inputs and nodes: hides constants outside

  const onnx::TensorProto* constant(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
      const auto it = scope->constants.find(name);
      if (it != scope->constants.end()) return it->second;
      if (scope->defined.contains(name)) return nullptr;
    }
    return nullptr;
  }
  const InferredType* type(std::string_view name) const {
    const auto it = types->find(std::string(name));
    return it == types->end() ? nullptr : &it->second;
  }
};

class Folder {
 public:
  Folder(Model& model, std::int64_t max_bytes) : model_(model), max_bytes_(max_bytes) {}

  Result<PassOutcome> run() {
    // Before IR 4 every initializer had to be an input.
    onnx::ModelProto& proto = model_.mutable_proto();
    if (proto.ir_version() < 4) proto.set_ir_version(4);
    const int before = count_nodes();
    std::optional<Inference> inference;
    for (int round = 0; round < kMaxRounds; ++round) {
      changed_ = false;
      for_each_graph(*proto.mutable_graph(),
                     [this](onnx::GraphProto& graph) { promote_constants(graph); });
      inference = infer(model_);
      inference_ = &*inference;
      indices_.clear();
      for_each_graph(static_cast<const onnx::GraphProto&>(proto.graph()),
                     [this](const onnx::GraphProto& graph) {
                       indices_.emplace(&graph, static_cast<int>(indices_.size()));
                     });
      refusals_.clear();
      TENONNX_RETURN_IF_ERROR(fold(*proto.mutable_graph(), nullptr));
      if (!changed_) break;
    }
    remove_dead_nodes(*proto.mutable_graph());
    remove_unused(proto);
    // The last round changed nothing: this is what inference says of the graph as it is, and of
    // dead tensors.
    if (!changed_) {
      GraphFacts facts;
      facts.inference = std::move(inference);
      facts.exact = true;
      keep_facts(model_, std::move(facts));
    }
    for (const auto& [node, reason] : lasting_refusals_) refusals_.try_emplace(node, reason);
    PassOutcome outcome;
    outcome.applied = before - count_nodes();
    for (auto& [node, reason] : refusals_) outcome.skipped.push_back({node, reason});
    return outcome;
  }

 private:
  int count_nodes() const {
    int count = 0;
    for_each_graph(model_.proto().graph(),
                   [&](const onnx::GraphProto& graph) { count += graph.node_size(); });
    return count;
  }

  static std::unordered_set<std::string_view> output_names(const onnx::GraphProto& graph) {
    std::unordered_set<std::string_view> names;
    for (const onnx::ValueInfoProto& output : graph.output()) names.insert(output.name());
    return names;
  }

  void promote_constants(onnx::GraphProto& graph) {
    const auto outputs = output_names(graph);
    erase_nodes(graph, [&](const onnx::NodeProto& node) {
      if (node.op_type() != "Constant" || node.output_size() != 1) return false;
      if (outputs.contains(node.output(0))) return false;
      onnx::TensorProto value;
      if (!constant_value(node, value)) return false;
      *graph.add_initializer() = std::move(value);
      return true;
    });
  }

  // Puts `value` in the place of a node's output: as an initializer, or for a graph output as a
  // Constant node.
  static void put(onnx::GraphProto& graph, bool is_output, const onnx::NodeProto& node,
                  onnx::TensorProto value, std::vector<onnx::NodeProto>& constants) {
    if (!is_output) {
      *graph.add_initializer() = std::move(value);
      return;
    }
    onnx::NodeProto constant;
    constant.set_op_type("Constant");
    constant.set_name(node.name());
    constant.add_output(value.name());
    onnx::AttributeProto& attribute = *constant.add_attribute();
    attribute.set_name("value");
    attribute.set_type(onnx::AttributeProto::TENSOR);
    *attribute.mutable_t() = std::move(value);
    constants.push_back(std::move(constant));
  }

  Status fold(onnx::GraphProto& graph, const Scope* outer) {
    Scope scope;
    scope.graph = &graph;
    const auto index = indices_.find(&graph);
    if (index == indices_.end()) return Internal("fold_constants: a body moved");
    scope.types = &inference_->graphs[static_cast<std::size_t>(index->second)];
    scope.outer = outer;
    fold_shapes(scope);
    while (true) {
      TENONNX_ASSIGN_OR_RETURN(const bool again, fold_region(scope));
      if (!again) break;
    }
    fill(scope);
    const auto condition = [&](std::string_view name) -> std::optional<bool> {
      const onnx::TensorProto* t = scope.constant(name);
      if (t == nullptr || t->data_type() != onnx::TensorProto::BOOL) return {};
      const auto value = model_.tensor(*t);
      if (!value.ok() || value->size() != 1) return {};
      return value->data<std::uint8_t>()[0] != 0;
    };
    if (inline_branches(model_.mutable_proto(), graph, condition) > 0) {
      changed_ = true;
      return {};  // what is inferred of this graph and its bodies is out of date
    }
    for (onnx::NodeProto& node : *graph.mutable_node()) {
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) TENONNX_RETURN_IF_ERROR(fold(*attribute.mutable_g(), &scope));
        for (onnx::GraphProto& body : *attribute.mutable_graphs())
          TENONNX_RETURN_IF_ERROR(fold(body, &scope));
      }
    }
    return {};
  }

  static void fill(Scope& scope) {
    scope.constants.clear();
    scope.defined.clear();
    for (const onnx::ValueInfoProto& input : scope.graph->input())
      scope.defined.insert(input.name());
    // An initializer that is an input too is a default that the caller may override.
    for (const onnx::TensorProto& t : scope.graph->initializer())
      if (!scope.defined.contains(t.name())) scope.constants.emplace(t.name(), &t);
    for (const onnx::NodeProto& node : scope.graph->node())
      for (const std::string& name : node.output())
        if (!name.empty()) scope.defined.insert(name);
  }

  // Shape and Size of static shapes, and what data propagation knows.
  void fold_shapes(Scope& scope) {
    const auto outputs = output_names(*scope.graph);
    std::vector<onnx::NodeProto> constants;
    erase_nodes(*scope.graph, [&](const onnx::NodeProto& node) {
      if (!normalized_domain(node.domain()).empty() || node.output_size() != 1) return false;
      const std::string& name = node.output(0);
      if (name.empty() || node.op_type() == "Constant") return false;
      Tensor value;
      const bool is_shape = node.op_type() == "Shape";
      if ((is_shape || node.op_type() == "Size") && node.input_size() == 1) {
        const InferredType* type = type_seen(scope, node.input(0));
        if (type != nullptr && type->is_static())
          value = is_shape
                      ? shape_value(node, type->shape)
                      : Tensor::from<std::int64_t>(DType::kInt64, {}, {element_count(type->shape)});
      }
      if (!value.defined() && scope.outer == nullptr) {
        const auto known = inference_->values.find(name);
        const InferredType* type = scope.type(name);
        if (known != inference_->values.end() && type != nullptr)
          value = integers(known->second, *type);
      }
      if (!value.defined()) return false;
      put(*scope.graph, outputs.contains(name), node, to_tensor_proto(value, name), constants);
      changed_ = true;
      return true;
    });
    prepend(*scope.graph, constants);
  }

  // The type of a tensor of this graph or an outer one.
  static const InferredType* type_seen(const Scope& scope, std::string_view name) {
    for (const Scope* s = &scope; s != nullptr; s = s->outer)
      if (const InferredType* type = s->type(name)) return type;
    return nullptr;
  }

  // Constant nodes depend on nothing: they may stand first.
  static void prepend(onnx::GraphProto& graph, std::vector<onnx::NodeProto>& constants) {
    if (constants.empty()) return;
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    for (onnx::NodeProto& node : constants) *nodes.Add() = std::move(node);
    for (onnx::NodeProto& node : *graph.mutable_node()) *nodes.Add() = std::move(node);
    graph.mutable_node()->Swap(&nodes);
  }

  // How many bytes the outputs of an evaluated node take; -1 with a reason where it must not be
  // evaluated.
  std::int64_t output_bytes(const Scope& scope, const onnx::NodeProto& node,
                            std::int64_t input_bytes, std::string& reason) const {
    std::int64_t bytes = 0;
    for (const std::string& name : node.output()) {
      if (name.empty()) continue;
      const InferredType* type = scope.type(name);
      if (type == nullptr || from_onnx_type(type->onnx_type) == DType::kUndefined) return -1;
      std::int64_t size = bytes_of(*type);
      if (size < 0 && size_is_bounded(node)) size = 8 * 8 * input_bytes;
      if (size < 0) {
        reason = fmt::format("the size of '{}' is not known", name);
        return -1;
      }
      bytes += size;
    }
    if (bytes > kLargestIntermediate) {
      reason = fmt::format("its outputs take {} bytes, more than the {} of an intermediate value",
                           bytes, kLargestIntermediate);
      return -1;
    }
    return bytes;
  }

  // Folds the nodes of one graph whose inputs are constant. True where it has to be tried again,
  // because ONNX Runtime refused a node.
  Result<bool> fold_region(Scope& scope) {
    fill(scope);
    onnx::GraphProto& graph = *scope.graph;
    const auto outputs = output_names(graph);

    struct Candidate {
      std::int64_t made_of = 0;  // bytes of the constants that it is computed from
      std::int64_t bytes = 0;
      bool kept = false;
    };
    std::unordered_map<const onnx::NodeProto*, Candidate> evaluated;
    std::unordered_map<std::string_view, const Candidate*> made;  // output -> its node
    std::unordered_set<std::string_view> used;  // by nodes that stay, and outputs of the graph
    for (const std::string_view name : outputs) used.insert(name);
    for (const onnx::NodeProto& node : graph.node()) {
      Candidate candidate;
      bool constant = node.op_type() != "Constant" && !never_folded(node) && node.output_size() > 0;
      const auto names = all_inputs(node);
      constant = constant && !names.empty();
      for (const std::string_view name : names) {
        if (!constant) break;
        if (const auto it = made.find(name); it != made.end()) {
          candidate.made_of += it->second->made_of;
        } else if (const onnx::TensorProto* t = scope.constant(name)) {
          candidate.made_of += bytes_of(*t);
        } else {
          constant = false;
        }
      }
      if (constant && !failed_.contains(node.output(0))) {
        std::string reason;
        candidate.bytes = output_bytes(scope, node, candidate.made_of, reason);
        if (!reason.empty()) refusals_[node_label(node)] = reason;
        if (candidate.bytes >= 0) {
          const auto [it, inserted] = evaluated.emplace(&node, candidate);
          for (const std::string& name : node.output())
            if (!name.empty()) made.emplace(name, &it->second);
          continue;
        }
      }
      used.insert(names.begin(), names.end());
    }
    if (evaluated.empty()) return false;

    // Backwards: what a node that stays takes is wanted.
    Region region;
    for (int i = graph.node_size() - 1; i >= 0; --i) {
      const onnx::NodeProto& node = graph.node(i);
      const auto it = evaluated.find(&node);
      if (it == evaluated.end()) continue;
      Candidate& candidate = it->second;
      bool wanted = false;
      for (const std::string& name : node.output()) wanted |= used.contains(name);
      if (wanted && candidate.bytes - candidate.made_of > max_bytes_) {
        candidate.kept = true;
        refusals_[node_label(node)] = fmt::format(
            "its value takes {} bytes, {} more than the constants that it is made of; max_bytes is "
            "{}",
            candidate.bytes, candidate.bytes - candidate.made_of, max_bytes_);
        for (const std::string_view name : all_inputs(node)) used.insert(name);
        continue;
      }
      if (!wanted) continue;
      for (const std::string& name : node.output()) {
        if (!used.contains(name)) continue;
        const InferredType& type = *scope.type(name);
        TensorInfo info{name, from_onnx_type(type.onnx_type), type.shape};
        info.has_rank = type.has_shape;
        region.outputs.push_back(std::move(info));
      }
    }
    std::map<std::string_view, const onnx::TensorProto*> constants;
    for (const onnx::NodeProto& node : graph.node()) {
      if (!evaluated.contains(&node)) continue;
      region.nodes.push_back(&node);
      for (const std::string_view name : all_inputs(node))
        if (const onnx::TensorProto* t = made.contains(name) ? nullptr : scope.constant(name))
          constants.emplace(name, t);
    }
    for (const auto& [name, t] : constants) region.constants.push_back(t);

    std::vector<Tensor> values;
    if (!region.outputs.empty()) {
      auto result = evaluate(model_, region);
      if (!result.ok()) {
        const std::size_t known = failed_.size();
        find_failing(region);
        // Refused together though not apart: leave them all.
        if (failed_.size() == known) {
          for (const onnx::NodeProto* node : region.nodes) refuse(*node, result.status().message());
        }
        return true;
      }
      values = std::move(result).value();
    }
    std::unordered_map<std::string_view, const Tensor*> by_name;
    for (std::size_t i = 0; i < values.size(); ++i)
      by_name.emplace(region.outputs[i].name, &values[i]);
    std::vector<onnx::NodeProto> made_constants;
    erase_nodes(graph, [&](const onnx::NodeProto& node) {
      const auto it = evaluated.find(&node);
      if (it == evaluated.end() || it->second.kept) return false;
      for (const std::string& name : node.output()) {
        if (const auto value = by_name.find(name); value != by_name.end())
          put(graph, outputs.contains(name), node, to_tensor_proto(*value->second, name),
              made_constants);
      }
      changed_ = true;
      return true;
    });
    prepend(graph, made_constants);
    return false;
  }

  // Halves the wanted outputs until single ones remain that ONNX Runtime refuses; their nodes are
  // not tried again, so that the next attempt asks for what they take.
  void find_failing(const Region& region) {
    if (region.outputs.size() > 1) {
      const auto middle =
          region.outputs.begin() + static_cast<std::ptrdiff_t>(region.outputs.size() / 2);
      for (const bool first : {true, false}) {
        Region half{region.nodes, region.constants, {}};
        half.outputs.assign(first ? region.outputs.begin() : middle,
                            first ? middle : region.outputs.end());
        if (!evaluate(model_, half).ok()) find_failing(half);
      }
      return;
    }
    const std::string& name = region.outputs.front().name;
    const auto result = evaluate(model_, region);
    if (result.ok()) return;
    for (const onnx::NodeProto* node : region.nodes)
      if (makes(*node, name)) refuse(*node, result.status().message());
  }

  void refuse(const onnx::NodeProto& node, const std::string& reason) {
    failed_.insert(node.output(0));
    lasting_refusals_[node_label(node)] = reason;
  }

  Model& model_;
  const std::int64_t max_bytes_;
  const Inference* inference_ = nullptr;
  std::unordered_map<const onnx::GraphProto*, int> indices_;
  bool changed_ = false;
  std::set<std::string> failed_;  // first outputs of nodes that ONNX Runtime refuses
  std::map<std::string, std::string> refusals_, lasting_refusals_;
};

}  // namespace

namespace passes {

Result<PassOutcome> fold_constants(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("fold_constants", options, {"max_bytes"}));
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t max_bytes,
                           count_option("fold_constants", options, "max_bytes", kDefaultMaxBytes));
  return Folder(model, max_bytes).run();
}

}  // namespace passes
}  // namespace tenonnx
