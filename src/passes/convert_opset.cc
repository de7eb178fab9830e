// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// convert_opset: moves a model to another opset of ai.onnx, up or down.
//
// before: opset 17, y = GridSample(x, grid)                      (mode: bilinear, the default)
// after:  opset 20, y = GridSample<mode = "linear">(x, grid)
//
// Every node is taken through its operator's history, schema by schema. A step whose schemas have
// the same signature (attributes with defaults, inputs, outputs) changes nothing but the types that
// are allowed; any other step needs its line in opset_adapters.cc. At the end the node must satisfy
// the schema at the target, and where that one takes fewer types, its tensors' types. Bodies of
// If/Loop/Scan and functions are converted with the rest; other domains stay. The IR version
// becomes the one that was current with the target opset.
//
// Option: target (13 to 26; must be given).
// Conditions: no node is refused. Otherwise nothing is converted at all.
// Refuses, with node, operator and versions: an operator that does not exist at the target
// (LayerNormalization below 17, Gelu below 20: their decompositions come first), a step without an
// adapter, what only the newer operator can do (GridSample of 5-D input below 20), a type that the
// target does not take.
// Class algebraic: the same operators, written otherwise. ONNX Runtime has the same kernel for most
// versions of an operator and then gives the same bits; its AveragePool from opset 19 on adds in
// another order than the one before.
//
// onnx has a version converter of its own. It is not used because (1.21) it has no way back for
// GridSample-20; passes AveragePool dilations, Pad's mode wrap and Resize's new policies down
// without a look; copies every tensor into another representation, which loses functions and
// external data; and stops at the first node that it does not know.
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "base/status.h"
#include "model/graph.h"
#include "model/tensor_proto.h"
#include "passes/edit.h"
#include "passes/opset_adapters.h"
#include "passes/opset_schemas.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {
namespace {

constexpr std::int64_t kLowest = 13, kHighest = kMaxOpset;

// The IR version of the onnx release that brought an opset (onnx/helper.py, VERSION_TABLE).
std::int64_t ir_version_for(std::int64_t opset) {
  constexpr std::pair<int, int> kFirst[] = {{25, 13}, {24, 12}, {23, 11}, {21, 10},
                                            {19, 9},  {15, 8},  {13, 7}};
  for (const auto& [first, ir] : kFirst)
    if (opset >= first) return ir;
  return 7;
}

// The graph that is being converted and those around it.
struct Scope {
  const Scope* outer = nullptr;
  const onnx::GraphProto* graph = nullptr;  // nullptr: a function's body
  const InferredTypes* types = nullptr;     // nullptr: nothing is known
  std::unordered_map<std::string, const onnx::TensorProto*> constants;  // nullptr: not constant
};

class Converter final : public AdaptContext {
 public:
  Converter(Model& model, std::int64_t target)
      : model_(model), target_(target), names_(model.proto()), inference_(infer(model)) {
    std::size_t i = 0;
    for_each_graph(static_cast<const onnx::GraphProto&>(model.proto().graph()),
                   [&](const onnx::GraphProto& graph) { graph_number_[&graph] = i++; });
    for (const auto& f : model.proto().functions())
      functions_.emplace(normalized_domain(f.domain()), f.name(), f.overload());
  }

  void convert() {
    onnx::ModelProto& proto = model_.mutable_proto();
    from_ = model_.opset();
    if (from_ != target_) convert_graph(*proto.mutable_graph(), nullptr);
    for (auto& import : *proto.mutable_opset_import())
      if (normalized_domain(import.domain()).empty()) import.set_version(target_);
    for (auto& function : *proto.mutable_functions()) convert_function(function);
  }

  PassOutcome& outcome() { return outcome_; }

  std::optional<Tensor> constant(std::string_view name) const override {
    const std::string key(name);
    for (const Scope* s = scope_; s != nullptr; s = s->outer) {
      const auto it = s->constants.find(key);
      if (it == s->constants.end()) continue;
      if (it->second == nullptr) return std::nullopt;
      auto tensor = model_.tensor(*it->second);
      return tensor.ok() ? std::optional<Tensor>(std::move(tensor).value()) : std::nullopt;
    }
    return std::nullopt;
  }

  const InferredType* type(std::string_view name) const override {
    const std::string key(name);
    for (const Scope* s = scope_; s != nullptr; s = s->outer) {
      if (s->types == nullptr) continue;
      const auto it = s->types->find(key);
      if (it != s->types->end()) return &it->second;
    }
    return nullptr;
  }

  std::string add_constant(std::string_view base, const Tensor& value) override {
    std::string name = names_.make(base);
    onnx::TensorProto tensor = to_tensor_proto(value, name);
    if (in_main_graph_) {
      new_initializers_.push_back(std::move(tensor));
    } else {
      onnx::NodeProto node = make_node("Constant", {}, {name});
      node.set_name(name);
      auto& attribute = *node.add_attribute();
      attribute.set_name("value");
      attribute.set_type(onnx::AttributeProto::TENSOR);
      *attribute.mutable_t() = std::move(tensor);
      new_nodes_.push_back(std::move(node));
    }
    return name;
  }

 private:
  template <typename Nodes>
  static void collect_constants(const Nodes& nodes, Scope& scope) {
    for (const onnx::NodeProto& node : nodes) {
      const auto* value = is_op(node, "Constant") ? find_attribute(node, "value") : nullptr;
      for (const std::string& name : node.output())
        scope.constants[name] = value != nullptr && value->has_t() ? &value->t() : nullptr;
    }
  }

  void convert_graph(onnx::GraphProto& graph, const Scope* outer) {
    Scope scope{outer, &graph, nullptr, {}};
    const auto number = graph_number_.find(&graph);
    if (number != graph_number_.end() && number->second < inference_.graphs.size())
      scope.types = &inference_.graphs[number->second];
    for (const auto& t : graph.initializer()) scope.constants[t.name()] = &t;
    // An initializer that is an input too is a default that the caller may override.
    for (const auto& input : graph.input()) scope.constants[input.name()] = nullptr;
    collect_constants(graph.node(), scope);
    convert_nodes(*graph.mutable_node(), scope, outer == nullptr);
    if (outer == nullptr)
      for (auto& tensor : new_initializers_) *graph.add_initializer() = std::move(tensor);
  }

  void convert_function(onnx::FunctionProto& function) {
    for (auto& import : *function.mutable_opset_import()) {
      if (!normalized_domain(import.domain()).empty() || import.version() == target_) continue;
      from_ = import.version();
      where_ = fmt::format(" in function '{}'", function.name());
      Scope scope;
      collect_constants(function.node(), scope);
      convert_nodes(*function.mutable_node(), scope, false);
      where_.clear();
      import.set_version(target_);
    }
  }

  void convert_nodes(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, Scope& scope,
                     bool main_graph) {
    google::protobuf::RepeatedPtrField<onnx::NodeProto> done;
    done.Reserve(nodes.size());
    for (onnx::NodeProto& node : nodes) {
      for (auto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) convert_graph(*attribute.mutable_g(), &scope);
        for (auto& body : *attribute.mutable_graphs()) convert_graph(body, &scope);
      }
      scope_ = &scope;
      in_main_graph_ = main_graph;
      const std::string label = node_label(node) + where_;
      if (Adapted adapted = convert_node(node); !adapted.ok) {
        outcome_.skipped.push_back({label, std::move(adapted.text)});
      } else if (!adapted.text.empty()) {
        outcome_.sites.push_back({label, std::move(adapted.text)});
      }
      for (auto& constant : new_nodes_) *done.Add() = std::move(constant);
      new_nodes_.clear();
      done.Add()->Swap(&node);
    }
    nodes.Swap(&done);
    scope_ = scope.outer;
  }

  Adapted convert_node(onnx::NodeProto& node) {
    if (!normalized_domain(node.domain()).empty() ||
        functions_.contains({"", node.op_type(), node.overload()}))
      return {};
    const onnx::OpSchema* const from = schema_at(node.op_type(), from_);
    const onnx::OpSchema* const to = schema_at(node.op_type(), target_);
    const auto versions = [&] { return fmt::format("opset {} to {}: ", from_, target_); };
    if (from == nullptr) {
      return {false, fmt::format("{}onnx knows no operator {} at opset {}", versions(),
                                 node.op_type(), from_)};
    }
    if (to == nullptr || to->Deprecated()) {
      const std::string_view advice = advice_for_missing(node.op_type());
      return {false, fmt::format("{}there is no {} at opset {}{}{}", versions(), node.op_type(),
                                 target_, advice.empty() ? "" : ": ", advice)};
    }
    if (from == to) return {};
    Adapted steps = take_steps(node);
    if (!steps.ok) return {false, versions() + steps.text};
    try {
      to->Verify(node);
    } catch (const std::exception& error) {
      return {false, fmt::format("{}it would not be valid: {}", versions(), error.what())};
    }
    if (Adapted types = check_types(node, *from, *to); !types.ok)
      return {false, versions() + types.text};
    return steps;
  }

  // Through every schema between the two versions.
  Adapted take_steps(onnx::NodeProto& node) {
    Adapted all;
    const int direction = target_ > from_ ? 1 : -1;
    const onnx::OpSchema* at = schema_at(node.op_type(), from_);
    for (std::int64_t version = from_ + direction;; version += direction) {
      const onnx::OpSchema* next = schema_at(node.op_type(), version);
      if (next == nullptr) return {false, fmt::format("there is none at opset {}", version)};
      if (next != at) {
        const int boundary = direction > 0 ? next->SinceVersion() : at->SinceVersion();
        const OpsetAdapter* adapter = find_opset_adapter(node.op_type(), boundary);
        if (adapter == nullptr && !same_signature(*at, *next)) {
          return {false, fmt::format("{} changed at opset {} in a way that has no adapter",
                                     node.op_type(), boundary)};
        }
        if (adapter != nullptr) {
          for (const auto& attribute : node.attribute()) {
            if (!attribute.ref_attr_name().empty())
              return {false,
                      fmt::format("its attribute '{}' comes from the caller of the function: "
                                  "inline the function first",
                                  attribute.name())};
          }
          Adapted step = (direction > 0 ? adapter->up : adapter->down)(node, *this);
          if (!step.ok) return step;
          if (!step.text.empty()) all.text += (all.text.empty() ? "" : "; ") + step.text;
        }
        at = next;
      }
      if (version == target_) return all;
    }
  }

  Adapted check_types(const onnx::NodeProto& node, const onnx::OpSchema& from,
                      const onnx::OpSchema& to) const {
    std::map<std::string, std::string> bound;  // type parameter -> type
    const auto check = [&](const auto& names, const auto& old_formals,
                           const auto& formals) -> Adapted {
      for (int i = 0; i < names.size(); ++i) {
        const auto* parameter = formal_parameter(formals, i);
        const auto* old = formal_parameter(old_formals, i);
        if (names[i].empty() || parameter == nullptr) continue;
        const InferredType* known = type(names[i]);
        if (known == nullptr || known->onnx_type == 0) {
          if (old != nullptr && takes_all_of(*parameter, *old)) continue;
          // A constant that an adapter has just made is of the right type.
          if (constant_is_new(names[i])) continue;
          return {false, fmt::format("the type of '{}' is not known, and {}-{} does not take all "
                                     "that {}-{} takes",
                                     names[i], to.Name(), to.SinceVersion(), from.Name(),
                                     from.SinceVersion())};
        }
        const std::string text = fmt::format("tensor({})", onnx_type_name(known->onnx_type));
        if (!takes(*parameter, text)) {
          return {false, fmt::format("{}-{} does not take {} as '{}' ('{}')", to.Name(),
                                     to.SinceVersion(), text, parameter->GetName(), names[i])};
        }
        if (!parameter->GetIsHomogeneous()) continue;
        const auto [it, fresh] = bound.emplace(parameter->GetTypeStr(), text);
        if (!fresh && it->second != text) {
          return {false,
                  fmt::format("{}-{} wants one type for all of {}, '{}' is {} and another {}",
                              to.Name(), to.SinceVersion(), parameter->GetTypeStr(), names[i], text,
                              it->second)};
        }
      }
      return {};
    };
    if (Adapted inputs = check(node.input(), from.inputs(), to.inputs()); !inputs.ok) return inputs;
    return check(node.output(), from.outputs(), to.outputs());
  }

  bool constant_is_new(const std::string& name) const {
    const auto named = [&](const auto& item) { return item.name() == name; };
    return std::any_of(new_initializers_.begin(), new_initializers_.end(), named) ||
           std::any_of(new_nodes_.begin(), new_nodes_.end(), named);
  }

  Model& model_;
  const std::int64_t target_;
  std::int64_t from_ = 0;
  std::string where_;
  UniqueNames names_;
  const Inference inference_;
  std::unordered_map<const onnx::GraphProto*, std::size_t> graph_number_;
  std::set<std::tuple<std::string, std::string, std::string>> functions_;
  const Scope* scope_ = nullptr;
  bool in_main_graph_ = false;
  std::vector<onnx::TensorProto> new_initializers_;
  std::vector<onnx::NodeProto> new_nodes_;
  PassOutcome outcome_;
};

bool is_at(const onnx::ModelProto& model, std::int64_t target) {
  const auto there = [&](const auto& import) {
    return !normalized_domain(import.domain()).empty() || import.version() == target;
  };
  return std::all_of(model.opset_import().begin(), model.opset_import().end(), there) &&
         std::all_of(model.functions().begin(), model.functions().end(), [&](const auto& f) {
           return std::all_of(f.opset_import().begin(), f.opset_import().end(), there);
         });
}

}  // namespace

namespace passes {

Result<PassOutcome> convert_opset(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("convert_opset", options, {"target"}));
  if (!options.contains("target"))
    return InvalidArgument("convert_opset needs its option target={} to {}", kLowest, kHighest);
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t target,
                           count_option("convert_opset", options, "target", 0));
  if (target < kLowest || target > kHighest)
    return InvalidArgument("convert_opset: target is {}, expected {} to {}", target, kLowest,
                           kHighest);
  if (is_at(model.proto(), target)) return PassOutcome();
  const std::int64_t from = model.opset();
  Model converted = model.clone();
  Converter converter(converted, target);
  converter.convert();
  PassOutcome outcome = std::move(converter.outcome());
  if (!outcome.skipped.empty()) {
    outcome.sites.clear();
    return outcome;
  }
  onnx::ModelProto& proto = converted.mutable_proto();
  // Before IR 4 every initializer had to be an input: no model goes back there. Overloads of
  // functions came with IR 10.
  const bool overloads = std::any_of(proto.functions().begin(), proto.functions().end(),
                                     [](const auto& f) { return !f.overload().empty(); });
  if (proto.ir_version() < ir_version_for(target) || (target < from && !overloads))
    proto.set_ir_version(ir_version_for(target));
  if (!outcome.sites.empty()) {
    remove_dead_nodes(*proto.mutable_graph());
    remove_unused(proto);
  }
  outcome.applied = 1 + static_cast<int>(outcome.sites.size());
  outcome.sites.push_back({"model", fmt::format("opset {} becomes {}", from, target)});
  model = std::move(converted);
  return outcome;
}

}  // namespace passes
}  // namespace tenonnx
