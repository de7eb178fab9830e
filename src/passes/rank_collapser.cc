// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/rank_collapser.h"

#include <algorithm>
#include <tuple>

#include "base/status.h"
#include "model/tensor_proto.h"
#include "passes/constants.h"
#include "passes/edit.h"

namespace tenonnx {
namespace {

// One result element from the elements at the same place of every operand.
bool is_elementwise(std::string_view op) {
  static constexpr std::string_view kOps =
      " Abs Add And BitShift Cast Ceil Clip Cos Div Elu Equal Erf Exp Floor Gelu Greater "
      "GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Min "
      "Mish "
      "Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Sigmoid Sign Sin Softplus Softsign "
      "Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor ";
  return kOps.find(fmt::format(" {} ", op)) != std::string_view::npos;
}

bool is_view(std::string_view op) {
  return op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" || op == "Flatten" ||
         op == "Identity";
}

bool is_reduction(std::string_view op) { return op.starts_with("Reduce"); }

}  // namespace

RankCollapser::RankCollapser(Model& model, std::size_t max_rank)
    : model_(model),
      max_rank_(max_rank),
      names_(model.proto()),
      types_(infer(model).graphs.front()) {
  const onnx::GraphProto& graph = model.proto().graph();
  for (const auto& t : graph.initializer()) initializers_.insert(t.name());
  for (const auto& i : graph.input()) initializers_.erase(i.name());
  for (const auto& o : graph.output()) fixed_.insert(o.name());
  for (const auto& node : graph.node()) {
    if (is_op(node, "Constant")) initializers_.insert(node.output(0));
    for (const std::string_view name : captured_names(node)) fixed_.emplace(name);
  }
}

// ---------------------------------------------------------------- reading

std::optional<Shape> RankCollapser::shape(const std::string& name) const {
  const auto it = types_.find(name);
  if (it == types_.end() || !it->second.has_shape) return std::nullopt;
  return it->second.shape;
}

bool RankCollapser::is_high(const std::string& name) const {
  const auto s = shape(name);
  return s && s->size() > max_rank_;
}

bool RankCollapser::touches_high(const onnx::NodeProto& node) const {
  const auto high = [&](const std::string& name) { return is_high(name); };
  return std::any_of(node.input().begin(), node.input().end(), high) ||
         std::any_of(node.output().begin(), node.output().end(), high);
}

Held RankCollapser::held(const std::string& name) const {
  const auto it = held_.find(name);
  if (it != held_.end()) return it->second;
  return {name, shape(name).value_or(Shape())};
}

std::optional<Tensor> RankCollapser::constant(const std::string& name) const {
  for (const onnx::TensorProto& made : constants_) {
    if (made.name() != name) continue;
    auto tensor = to_tensor(made);
    return tensor.ok() ? std::optional<Tensor>(std::move(tensor).value()) : std::nullopt;
  }
  if (!initializers_.contains(name)) return std::nullopt;
  auto tensor = model_.constant(name);
  if (!tensor.ok()) return std::nullopt;
  return std::move(tensor).value();
}

std::optional<std::vector<std::int64_t>> RankCollapser::integers(const std::string& name) const {
  const auto t = constant(name);
  return t ? integers_of(*t) : std::nullopt;
}

// ---------------------------------------------------------------- building

std::string RankCollapser::add_constant(const std::string& base, const Tensor& value) {
  std::string name = names_.make(base);
  constants_.push_back(to_tensor_proto(value, name));
  return name;
}

void RankCollapser::emit(onnx::NodeProto node) {
  if (node.name().empty()) node.set_name(names_.make(at_ + "_" + node.op_type()));
  nodes_.push_back(std::move(node));
}

std::string RankCollapser::reshape(const Held& from, const Shape& to, const std::string& name) {
  if (from.shape.size() > max_rank_ || to.size() > max_rank_) ++remaining_;
  emit(make_node("Reshape", {from.name, add_constant(name + "_shape", int64_vector(to))}, {name}));
  return name;
}

std::string RankCollapser::view(const std::string& name, const Shape& to) {
  const Held from = held(name);
  if (from.shape == to) return from.name;
  const auto [it, added] = views_.try_emplace({from.name, to});
  if (!added) return it->second;
  const std::string base = from.name + fmt::format("_{}d", to.size());
  if (const auto value = constant(from.name); value && value->bytes() <= kLargestCopy) {
    it->second = add_constant(base, value->reshaped(to).value());
  } else {
    it->second = names_.make(base);
    reshape(from, to, it->second);
  }
  return it->second;
}

std::string RankCollapser::result_name(const std::string& name, const Shape& as) {
  if (shape(name) == as) return name;
  std::string result = names_.make(name + fmt::format("_{}d", as.size()));
  fresh_.insert(result);
  return result;
}

void RankCollapser::hold(const std::string& name, const std::string& result, const Shape& as) {
  if (result == name) return;
  if (is_high(name))
    held_[name] = {result, as};
  else
    reshape({result, as}, *shape(name), name);
}

// Gives a tensor its own shape again, for those that must have it.
void RankCollapser::materialize(const std::string& name) {
  const auto it = held_.find(name);
  if (it == held_.end() || it->second.name == name || !is_high(name)) return;
  if (materialized_.insert(name).second) reshape(it->second, *shape(name), name);
}

onnx::NodeProto RankCollapser::like(const onnx::NodeProto& node,
                                    const std::vector<std::string>& inputs,
                                    const std::vector<std::string>& outputs) {
  onnx::NodeProto copy = node;
  copy.clear_input();
  copy.clear_output();
  for (const std::string& name : inputs) copy.add_input(name);
  for (const std::string& name : outputs) copy.add_output(name);
  return copy;
}

// ---------------------------------------------------------------- forms

std::optional<Shape> RankCollapser::choose(const std::string& input, const Shape& of,
                                           const Cuts& cuts) const {
  const Shape present = held(input).shape;
  if (fits(present) && is_form(present, of, cuts)) return present;
  const std::int64_t count = element_count(of);
  for (const Cuts& candidate : {all_cuts(of), cuts})
    if (candidate.size() < max_rank_) return form_of(count, candidate);
  return std::nullopt;
}

// Where the operands of an element-wise node broadcast differently.
Cuts RankCollapser::operand_cuts(const onnx::NodeProto& node) const {
  const Shape out = *shape(node.output(0));
  Cuts cuts;
  for (const std::string& input : node.input()) {
    const auto s = input.empty() ? std::nullopt : shape(input);
    if (s && element_count(*s) > 1) cuts.merge(flag_cuts(broadcast_flags(*s, out), out));
  }
  return cuts;
}

std::string RankCollapser::chain_of(const std::string& name) {
  std::string at = name;
  for (auto it = chain_.find(at); it != chain_.end() && it->second != at; it = chain_.find(at))
    at = it->second;
  return at;
}

// Tensors of one shape that element-wise nodes join share the cuts of all these nodes.
void RankCollapser::find_chains() {
  const auto usable = [&](const onnx::NodeProto& node) {
    if (!is_elementwise(node.op_type()) || !normalized_domain(node.domain()).empty()) return false;
    for (const auto* names : {&node.input(), &node.output()})
      for (const std::string& name : *names)
        if (!name.empty() && (!shape(name) || element_count(*shape(name)) < 1)) return false;
    return is_high(node.output(0));
  };
  const auto& nodes = model_.proto().graph().node();
  for (const auto& node : nodes) {
    if (!usable(node)) continue;
    for (const std::string& input : node.input())
      if (!input.empty() && shape(input) == shape(node.output(0)))
        chain_[chain_of(input)] = chain_of(node.output(0));
  }
  for (const auto& node : nodes)
    if (usable(node)) chain_cuts_[chain_of(node.output(0))].merge(operand_cuts(node));
}

// ---------------------------------------------------------------- lowering

RankCollapser::Why RankCollapser::lower(const onnx::NodeProto& node) {
  const std::string& op = node.op_type();
  if (!normalized_domain(node.domain()).empty()) return "is of another domain";
  for (const auto* names : {&node.input(), &node.output()})
    for (const std::string& name : *names)
      if (!name.empty() && (!shape(name) || element_count(*shape(name)) < 0))
        return fmt::format("the shape of '{}' is not static", name);
  for (const auto* names : {&node.input(), &node.output()})
    for (const std::string& name : *names)
      if (!name.empty() && element_count(*shape(name)) == 0 && !is_view(op) && op != "Resize")
        return fmt::format("'{}' has no elements", name);
  if (is_view(op)) return lower_view(node);
  if (is_elementwise(op)) return lower_elementwise(node);
  if (is_reduction(op)) return lower_reduction(node);
  static const std::map<std::string_view, Why (RankCollapser::*)(const onnx::NodeProto&)>
      kLowering = {{"Transpose", &RankCollapser::lower_transpose},
                   {"Softmax", &RankCollapser::lower_softmax},
                   {"LogSoftmax", &RankCollapser::lower_softmax},
                   {"Slice", &RankCollapser::lower_slice},
                   {"Split", &RankCollapser::lower_split},
                   {"Concat", &RankCollapser::lower_concat},
                   {"Gather", &RankCollapser::lower_gather},
                   {"Expand", &RankCollapser::lower_expand},
                   {"Tile", &RankCollapser::lower_tile},
                   {"LayerNormalization", &RankCollapser::lower_layer_norm}};
  const auto it = kLowering.find(op);
  if (it == kLowering.end())
    return fmt::format("{} is not among the operators whose dimensions can be merged", op);
  return (this->*it->second)(node);
}

RankCollapser::Why RankCollapser::lower_view(const onnx::NodeProto& node) {
  const Held from = held(node.input(0));
  const std::string& out = node.output(0);
  const Shape to = *shape(out);
  if (is_high(out)) {
    held_[out] = from;
  } else if (from.shape != to) {
    reshape(from, to, out);
  } else if (fresh_.contains(from.name) && !final_names_.contains(from.name)) {
    final_names_[from.name] = out;  // the result may bear the name of this tensor
    held_[out] = from;
  } else if (!fixed_.contains(out)) {
    held_[out] = from;
    outcome_.renamed[out] = from.name;
  } else {
    reshape(from, to, out);
  }
  return {};
}

// ---------------------------------------------------------------- the whole graph

PassOutcome RankCollapser::run() {
  onnx::GraphProto& graph = *model_.mutable_proto().mutable_graph();
  find_chains();
  int before = 0;
  for (const onnx::NodeProto& node : graph.node()) {
    at_ = node.name();
    if (touches_high(node) && !is_op(node, "Constant")) {
      ++before;
      std::size_t rank = 0;
      for (const auto* names : {&node.input(), &node.output()})
        for (const std::string& name : *names)
          rank = std::max(rank, shape(name).value_or(Shape()).size());
      const auto state = std::make_tuple(nodes_.size(), constants_.size(), remaining_, views_);
      const Why why = lower(node);
      if (why.empty()) {
        outcome_.sites.push_back(
            {node_label(node),
             fmt::format("works in at most {} dimensions for {}", max_rank_, rank)});
        continue;
      }
      nodes_.resize(std::get<0>(state));
      constants_.resize(std::get<1>(state));
      remaining_ = std::get<2>(state) + 1;
      views_ = std::get<3>(state);
      outcome_.skipped.push_back({node_label(node), why});
    }
    onnx::NodeProto kept = node;
    for (std::string& input : *kept.mutable_input()) {
      materialize(input);
      const auto it = held_.find(input);
      if (it != held_.end() && !is_high(input)) input = it->second.name;
    }
    for (const std::string_view name : captured_names(node)) materialize(std::string(name));
    nodes_.push_back(std::move(kept));
  }
  for (const auto& output : graph.output()) materialize(output.name());
  if (outcome_.sites.empty()) return std::move(outcome_);
  if (remaining_ >= before) {
    outcome_.sites.clear();
    outcome_.renamed.clear();
    outcome_.skipped.push_back(
        {"model",
         fmt::format("of {} nodes beyond {} dimensions {} would remain: nothing is changed", before,
                     max_rank_, remaining_)});
    return std::move(outcome_);
  }
  for (auto& [old_name, new_name] : outcome_.renamed)
    if (const auto it = final_names_.find(new_name); it != final_names_.end())
      new_name = it->second;
  graph.clear_node();
  for (onnx::NodeProto& node : nodes_) {
    for (auto* names : {node.mutable_input(), node.mutable_output()})
      for (std::string& name : *names)
        if (const auto it = final_names_.find(name); it != final_names_.end()) name = it->second;
    *graph.add_node() = std::move(node);
  }
  for (auto& tensor : constants_) *graph.add_initializer() = std::move(tensor);
  remove_dead_nodes(graph);
  remove_unused(model_.mutable_proto());
  outcome_.applied = static_cast<int>(outcome_.sites.size());
  outcome_.sites.push_back({"model", fmt::format("of {} nodes beyond {} dimensions {} remain",
                                                 before, max_rank_, remaining_)});
  return std::move(outcome_);
}

}  // namespace tenonnx
