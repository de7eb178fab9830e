// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/graph.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <functional>
#include <queue>

#include "base/status.h"

namespace tenonnx {
namespace {

bool has_body(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(), [](const auto& attribute) {
    return attribute.has_g() || attribute.graphs_size() > 0;
  });
}

class CaptureFinder {
 public:
  void visit_node_bodies(const onnx::NodeProto& node) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) visit(attribute.g());
      for (const auto& g : attribute.graphs()) visit(g);
    }
  }
  std::vector<std::string_view> take() { return std::move(names_); }

 private:
  void visit(const onnx::GraphProto& graph) {
    auto& local = scopes_.emplace_back();
    for (const auto& input : graph.input()) local.insert(input.name());
    for (const auto& t : graph.initializer()) local.insert(t.name());
    for (const auto& s : graph.sparse_initializer()) local.insert(s.values().name());
    for (const auto& node : graph.node())
      for (const auto& output : node.output()) local.insert(output);
    for (const auto& node : graph.node()) {
      for (const auto& input : node.input()) use(input);
      visit_node_bodies(node);
    }
    for (const auto& output : graph.output()) use(output.name());
    scopes_.pop_back();
  }
  void use(std::string_view name) {
    if (name.empty()) return;
    for (const auto& scope : scopes_)
      if (scope.contains(name)) return;
    if (seen_.insert(name).second) names_.push_back(name);
  }
  std::vector<std::unordered_set<std::string_view>> scopes_;
  std::unordered_set<std::string_view> seen_;
  std::vector<std::string_view> names_;
};

}  // namespace

std::vector<std::string_view> captured_names(const onnx::NodeProto& node) {
  if (!has_body(node)) return {};
  CaptureFinder finder;
  finder.visit_node_bodies(node);
  return finder.take();
}

GraphIndex::GraphIndex(const onnx::GraphProto& graph) : graph_(&graph) {
  const std::size_t expected = static_cast<std::size_t>(graph.node_size()) +
                               static_cast<std::size_t>(graph.initializer_size()) + 16;
  values_.reserve(expected);
  by_name_.reserve(expected);
  for (const auto& input : graph.input()) {
    Value& value = add(input.name());
    value.is_input = true;
    value.info = &input;
  }
  for (const auto& t : graph.initializer()) add(t.name()).initializer = &t;
  for (const auto& s : graph.sparse_initializer())
    add(s.values().name()).is_sparse_initializer = true;
  for (int i = 0; i < graph.node_size(); ++i) {
    const auto& node = graph.node(i);
    for (int o = 0; o < node.output_size(); ++o) {
      if (node.output(o).empty()) continue;
      Value& value = add(node.output(o));
      if (value.producer >= 0) continue;
      value.producer = i;
      value.output = o;
    }
  }
  const auto record = [&](const onnx::ValueInfoProto& info) -> Value* {
    const auto it = by_name_.find(info.name());
    if (it == by_name_.end()) return nullptr;
    Value& value = values_[it->second];
    if (value.info == nullptr) value.info = &info;
    return &value;
  };
  for (const auto& output : graph.output())
    if (Value* value = record(output)) value->is_output = true;
  for (const auto& info : graph.value_info()) record(info);
  for (int i = 0; i < graph.node_size(); ++i) {
    const auto& node = graph.node(i);
    for (int k = 0; k < node.input_size(); ++k)
      if (const auto it = by_name_.find(node.input(k)); it != by_name_.end())
        values_[it->second].uses.push_back({i, k});
    auto captured = captured_names(node);
    if (captured.empty()) continue;
    for (std::string_view name : captured)
      if (const auto it = by_name_.find(name); it != by_name_.end())
        values_[it->second].uses.push_back({i, -1});
    captures_[i] = std::move(captured);
  }
}

Value& GraphIndex::add(std::string_view name) {
  const auto [it, fresh] = by_name_.try_emplace(name, values_.size());
  if (fresh) values_.emplace_back().name = name;
  return values_[it->second];
}

const Value* GraphIndex::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &values_[it->second];
}

const onnx::NodeProto* GraphIndex::producer(std::string_view name) const {
  const Value* value = find(name);
  return value == nullptr || value->producer < 0 ? nullptr : &graph_->node(value->producer);
}

const std::vector<Use>& GraphIndex::uses(std::string_view name) const {
  static const std::vector<Use> kNone;
  const Value* value = find(name);
  return value == nullptr ? kNone : value->uses;
}

const std::vector<std::string_view>& GraphIndex::captures(int index) const {
  static const std::vector<std::string_view> kNone;
  const auto it = captures_.find(index);
  return it == captures_.end() ? kNone : it->second;
}

Result<std::vector<int>> topological_order(const onnx::GraphProto& graph) {
  const int n = graph.node_size();
  std::unordered_map<std::string_view, int> producer;
  for (int i = 0; i < n; ++i)
    for (const auto& output : graph.node(i).output())
      if (!output.empty()) producer.try_emplace(output, i);
  std::vector<std::vector<int>> successors(static_cast<std::size_t>(n));
  std::vector<int> waiting(static_cast<std::size_t>(n), 0);
  const auto link = [&](std::string_view name, int to) {
    const auto it = producer.find(name);
    if (it == producer.end()) return;
    successors[static_cast<std::size_t>(it->second)].push_back(to);
    ++waiting[static_cast<std::size_t>(to)];
  };
  for (int i = 0; i < n; ++i) {
    for (const auto& input : graph.node(i).input()) link(input, i);
    for (std::string_view name : captured_names(graph.node(i))) link(name, i);
  }
  // The lowest index that is free comes first: a graph in order keeps its order.
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < n; ++i)
    if (waiting[static_cast<std::size_t>(i)] == 0) ready.push(i);
  std::vector<int> order;
  order.reserve(static_cast<std::size_t>(n));
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    order.push_back(i);
    for (int next : successors[static_cast<std::size_t>(i)])
      if (--waiting[static_cast<std::size_t>(next)] == 0) ready.push(next);
  }
  if (order.size() == static_cast<std::size_t>(n)) return order;

  // What is left is on a cycle or behind one. Every such node has a producer among them: walking
  // back from any meets a node twice, and that is a cycle.
  std::vector<int> before(static_cast<std::size_t>(n), -1);
  for (int i = 0; i < n; ++i)
    if (waiting[static_cast<std::size_t>(i)] > 0)
      for (int next : successors[static_cast<std::size_t>(i)])
        before[static_cast<std::size_t>(next)] = i;
  int at = 0;
  while (waiting[static_cast<std::size_t>(at)] == 0) ++at;
  std::vector<bool> seen(static_cast<std::size_t>(n), false);
  while (!seen[static_cast<std::size_t>(at)]) {
    seen[static_cast<std::size_t>(at)] = true;
    at = before[static_cast<std::size_t>(at)];
  }
  std::vector<std::string> names;
  int i = at;
  do {
    names.push_back(node_label(graph.node(i)));
    i = before[static_cast<std::size_t>(i)];
  } while (i != at);
  std::reverse(names.begin(), names.end());
  std::string path;
  constexpr std::size_t kMost = 6;
  for (std::size_t k = 0; k < names.size() && k < kMost; ++k) path += names[k] + " -> ";
  if (names.size() > kMost) path += fmt::format("({} more) -> ", names.size() - kMost);
  return DataLoss("the graph has a cycle: {}{}", path, names.front());
}

Result<std::string> sort_nodes(onnx::GraphProto& graph) {
  std::string first;
  Status failed;
  for_each_graph(graph, [&](onnx::GraphProto& g) {
    if (!failed.ok()) return;
    auto order = topological_order(g);
    if (!order.ok()) {
      failed = order.status();
      return;
    }
    if (std::is_sorted(order->begin(), order->end())) return;
    for (std::size_t i = 0; i < order->size() && first.empty(); ++i)
      if ((*order)[i] != static_cast<int>(i)) first = node_label(g.node(static_cast<int>(i)));
    google::protobuf::RepeatedPtrField<onnx::NodeProto> sorted;
    sorted.Reserve(g.node_size());
    for (int i : *order) sorted.Add()->Swap(g.mutable_node(i));
    g.mutable_node()->Swap(&sorted);
  });
  if (!failed.ok()) return failed;
  return first;
}

}  // namespace tenonnx
