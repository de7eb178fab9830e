// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/rewriter.h"

#include <algorithm>
#include <utility>

#include "base/half.h"
#include "base/status.h"
#include "model/tensor_proto.h"
#include "passes/constants.h"

namespace tenonnx {
namespace {

// A pass over the largest export (some 8,000 nodes) takes 3 to 6 sweeps; a chain of n nodes that
// shrinks from one end takes n. A pass that undoes its own work would never end.
constexpr int kMaxSweeps = 10000;

std::optional<double> first_element(const Tensor& t) {
  switch (t.dtype()) {
    case DType::kFloat32:
      return t.data<float>()[0];
    case DType::kFloat64:
      return t.data<double>()[0];
    case DType::kFloat16:
      return float16_to_float(t.data<std::uint16_t>()[0]);
    case DType::kBFloat16:
      return bfloat16_to_float(t.data<std::uint16_t>()[0]);
    case DType::kInt32:
      return t.data<std::int32_t>()[0];
    case DType::kInt64:
      return static_cast<double>(t.data<std::int64_t>()[0]);
    case DType::kInt8:
      return t.data<std::int8_t>()[0];
    case DType::kUInt8:
      return t.data<std::uint8_t>()[0];
    default:
      return std::nullopt;
  }
}

// Follows a chain of replacements.
const std::string& resolve(const std::unordered_map<std::string, std::string>& to,
                           const std::string& name) {
  const std::string* at = &name;
  for (auto it = to.find(*at); it != to.end(); it = to.find(*at)) at = &it->second;
  return *at;
}

// In a body a name that it defines itself is another tensor.
void rename_inputs(onnx::GraphProto& graph, std::unordered_map<std::string, std::string> to) {
  for (const auto& input : graph.input()) to.erase(input.name());
  for (const auto& tensor : graph.initializer()) to.erase(tensor.name());
  for (const auto& node : graph.node())
    for (const std::string& name : node.output()) to.erase(name);
  if (to.empty()) return;
  for (auto& node : *graph.mutable_node()) {
    for (std::string& name : *node.mutable_input()) name = resolve(to, name);
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) rename_inputs(*attribute.mutable_g(), to);
      for (auto& body : *attribute.mutable_graphs()) rename_inputs(body, to);
    }
  }
  for (auto& output : *graph.mutable_output()) *output.mutable_name() = resolve(to, output.name());
}

void rename_inputs(onnx::NodeProto& node, const std::unordered_map<std::string, std::string>& to) {
  for (std::string& name : *node.mutable_input()) name = resolve(to, name);
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) rename_inputs(*attribute.mutable_g(), to);
    for (auto& body : *attribute.mutable_graphs()) rename_inputs(body, to);
  }
}

}  // namespace

Rewriter::Rewriter(Model& model) : model_(model), facts_(take_facts(model)) { begin_sweep(); }

std::string Rewriter::make_name(std::string_view base) {
  if (!facts_.names) facts_.names.emplace(model_.proto());
  std::string name = facts_.names->make(base);
  // An earlier pass may have removed a tensor of this name.
  if (facts_.inference) facts_.inference->graphs.front().erase(name);
  fresh_.insert(name);
  return name;
}

void Rewriter::begin_sweep() {
  if (!facts_.index) facts_.index.emplace(model_.proto().graph());
  constants_.clear();
  claimed_.clear();
  open_ = {};
  sweep_ = {};
  applied_in_sweep_ = 0;
  outcome_.skipped.clear();
}

Status Rewriter::run(const std::function<void(int)>& rule) {
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    begin_sweep();
    for (int i = 0; i < size(); ++i)
      if (!claimed_.contains(i)) rule(i);
    if (applied_in_sweep_ == 0) return {};
    TENONNX_RETURN_IF_ERROR(end_sweep());
  }
  return Internal("a pass still changes the graph after {} sweeps", kMaxSweeps);
}

Status Rewriter::end_sweep() {
  facts_.index.reset();
  facts_.exact = false;
  onnx::GraphProto& graph = *model_.mutable_proto().mutable_graph();
  const std::unordered_set<int> removed(sweep_.removed.begin(), sweep_.removed.end());
  std::stable_sort(sweep_.inserted.begin(), sweep_.inserted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  nodes.Reserve(graph.node_size() + static_cast<int>(sweep_.inserted.size()));
  auto next = sweep_.inserted.begin();
  for (int i = 0; i < graph.node_size(); ++i) {
    for (; next != sweep_.inserted.end() && next->first == i; ++next)
      *nodes.Add() = std::move(next->second);
    if (!removed.contains(i)) nodes.Add()->Swap(graph.mutable_node(i));
  }
  graph.mutable_node()->Swap(&nodes);

  std::unordered_map<std::string, std::string> to(sweep_.aliases.begin(), sweep_.aliases.end());
  if (!to.empty())
    for (auto& node : *graph.mutable_node()) rename_inputs(node, to);
  for (const auto& [old_name, new_name] : sweep_.renames) {
    for (auto& node : *graph.mutable_node())
      for (std::string& name : *node.mutable_output())
        if (name == old_name) name = new_name;
    const std::unordered_map<std::string, std::string> one = {{old_name, new_name}};
    for (auto& node : *graph.mutable_node()) rename_inputs(node, one);
    // What was recorded of the old name; the output itself says what the new one is.
    auto& infos = *graph.mutable_value_info();
    for (int i = infos.size() - 1; i >= 0; --i)
      if (infos.Get(i).name() == old_name) infos.DeleteSubrange(i, 1);
    if (!facts_.inference) continue;
    InferredTypes& types = facts_.inference->graphs.front();
    if (const auto known = types.find(old_name); known != types.end())
      types[new_name] = known->second;
  }
  for (auto& [old_name, new_name] : outcome_.renamed) new_name = resolve(to, new_name);
  for (const auto& [from, target] : sweep_.aliases)
    if (!fresh_.contains(from)) outcome_.renamed.emplace(from, resolve(to, target));
  for (auto& [old_name, new_name] : outcome_.renamed)
    for (const auto& [from, target] : sweep_.renames)
      if (new_name == from) new_name = target;
  for (const auto& [old_name, new_name] : sweep_.renames)
    outcome_.renamed.emplace(old_name, new_name);
  for (auto& tensor : sweep_.initializers) *graph.add_initializer() = std::move(tensor);
  TENONNX_ASSIGN_OR_RETURN([[maybe_unused]] const std::string moved, sort_nodes(graph));
  remove_dead_nodes(graph);
  return {};
}

PassOutcome Rewriter::finish() {
  if (outcome_.applied > 0) {
    facts_.index.reset();
    constants_.clear();
    onnx::ModelProto& proto = model_.mutable_proto();
    remove_dead_nodes(*proto.mutable_graph());
    remove_unused(proto);
    drop_gone_names();
  }
  keep_facts(model_, std::move(facts_));
  return std::move(outcome_);
}

// A name is no other tensor's where that is gone too, or is a constant.
void Rewriter::drop_gone_names() {
  if (outcome_.renamed.empty()) return;
  const onnx::GraphProto& graph = model_.proto().graph();
  std::unordered_set<std::string_view> computed;
  for (const auto& input : graph.input()) computed.insert(input.name());
  for (const auto& node : graph.node()) computed.insert(node.output().begin(), node.output().end());
  std::erase_if(outcome_.renamed, [&](const auto& renamed) {
    return renamed.first == renamed.second || !computed.contains(renamed.second);
  });
}

int Rewriter::producer(std::string_view name) const {
  const Value* value = facts_.index->find(name);
  return value == nullptr ? -1 : value->producer;
}

int Rewriter::producer(std::string_view name, std::string_view op_type) const {
  const int index = producer(name);
  return index >= 0 && is_op(node(index), op_type) ? index : -1;
}

std::size_t Rewriter::use_count(std::string_view name) const {
  const Value* value = facts_.index->find(name);
  return value == nullptr ? 0 : value->uses.size() + (value->is_output ? 1 : 0);
}

int Rewriter::sole_user(std::string_view name) const {
  const Value* value = facts_.index->find(name);
  if (value == nullptr || value->is_output || value->uses.empty()) return -1;
  for (const Use& use : value->uses)
    if (use.input < 0 || use.node != value->uses.front().node) return -1;
  return value->uses.front().node;
}

bool Rewriter::is_graph_output(std::string_view name) const {
  const Value* value = facts_.index->find(name);
  return value != nullptr && value->is_output;
}

const Tensor* Rewriter::constant(std::string_view name) const {
  const auto [it, inserted] = constants_.try_emplace(std::string(name));
  if (inserted) {
    const Value* value = facts_.index->find(name);
    // An initializer that is an input too is a default that the caller may override.
    const bool fixed = value != nullptr && !value->is_input &&
                       (value->initializer != nullptr ||
                        (value->producer >= 0 && is_op(node(value->producer), "Constant")));
    if (fixed) {
      auto tensor = model_.constant(name);
      if (tensor.ok()) it->second = std::move(tensor).value();
    }
  }
  return it->second ? &*it->second : nullptr;
}

std::optional<double> Rewriter::scalar(std::string_view name) const {
  const Tensor* tensor = constant(name);
  if (tensor == nullptr || tensor->size() != 1) return std::nullopt;
  return first_element(*tensor);
}

std::optional<std::vector<std::int64_t>> Rewriter::integers(std::string_view name) const {
  const Tensor* t = constant(name);
  return t == nullptr ? std::nullopt : integers_of(*t);
}

const Inference& Rewriter::inference() const {
  if (!facts_.inference) {
    facts_.inference = infer(model_);
    facts_.exact = true;
  }
  return *facts_.inference;
}

const InferredType* Rewriter::type(std::string_view name) const {
  const std::string key(name);
  const auto find = [&]() -> const InferredType* {
    const InferredTypes& types = inference().graphs.front();
    const auto it = types.find(key);
    return it == types.end() ? nullptr : &it->second;
  };
  const InferredType* found = find();
  // Names keep their values, so what is known stays right; only a tensor that is new since the last
  // inference makes another one worth its time, once a sweep.
  if (found == nullptr && !facts_.exact && facts_.index->find(name) != nullptr) {
    facts_.inference.reset();
    found = find();
  }
  return found;
}

DType Rewriter::dtype(std::string_view name) const {
  const InferredType* t = type(name);
  return t == nullptr ? DType::kUndefined : from_onnx_type(t->onnx_type);
}

std::optional<Shape> Rewriter::shape(std::string_view name) const {
  const InferredType* t = type(name);
  if (t == nullptr || !t->has_shape) return std::nullopt;
  return t->shape;
}

std::optional<Shape> Rewriter::static_shape(std::string_view name) const {
  const InferredType* t = type(name);
  if (t == nullptr || !t->is_static()) return std::nullopt;
  return t->shape;
}

bool Rewriter::begin(const std::vector<int>& nodes) {
  open_ = {};
  for (const int index : nodes) {
    if (index < 0) continue;
    if (claimed_.contains(index)) return false;
    open_.claims.push_back(index);
  }
  return true;
}

std::string Rewriter::fresh(std::string_view base) { return make_name(base); }

void Rewriter::insert(int at, onnx::NodeProto new_node) {
  if (new_node.name().empty()) new_node.set_name(make_name(node(at).name()));
  open_.inserted.emplace_back(at, std::move(new_node));
}

std::string Rewriter::add_constant(std::string_view base, const Tensor& value) {
  std::string name = make_name(base);
  open_.initializers.push_back(to_tensor_proto(value, name));
  return name;
}

void Rewriter::remove(int index) { open_.removed.push_back(index); }

void Rewriter::replace(int index, onnx::NodeProto new_node) {
  if (new_node.name().empty()) new_node.set_name(node(index).name());
  insert(index, std::move(new_node));
  remove(index);
}

bool Rewriter::alias(std::string_view from, std::string_view to) {
  if (!is_graph_output(from)) {
    open_.aliases.emplace_back(from, to);
    return true;
  }
  const Value* target = facts_.index->find(to);
  if (target == nullptr || target->producer < 0 || target->is_output) return false;
  if (claimed_.contains(target->producer)) return false;
  open_.claims.push_back(target->producer);
  open_.aliases.emplace_back(from, to);  // other uses of `from` first, then both get its name
  open_.renames.emplace_back(to, from);
  return true;
}

void Rewriter::apply(int index, std::string_view what) {
  // Before the first change is made, while all names still stand in the graph.
  if (!facts_.names) facts_.names.emplace(model_.proto());
  claimed_.insert(open_.claims.begin(), open_.claims.end());
  const auto move_all = [](auto& from, auto& into) {
    into.insert(into.end(), std::make_move_iterator(from.begin()),
                std::make_move_iterator(from.end()));
  };
  move_all(open_.removed, sweep_.removed);
  move_all(open_.inserted, sweep_.inserted);
  move_all(open_.initializers, sweep_.initializers);
  move_all(open_.aliases, sweep_.aliases);
  move_all(open_.renames, sweep_.renames);
  open_ = {};
  ++applied_in_sweep_;
  ++outcome_.applied;
  outcome_.sites.push_back({node_label(node(index)), std::string(what)});
}

void Rewriter::refuse(int index, std::string_view reason) {
  outcome_.skipped.push_back({node_label(node(index)), std::string(reason)});
}

}  // namespace tenonnx
