// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "cut/data_flow.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <numeric>

namespace tenonnx {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

void add_once(TensorIds& ids, int id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

// Batch, channels and two of space, or more: cameras, time.
constexpr std::size_t kImageRank = 4;

}  // namespace

bool hands_on_no_values(const onnx::NodeProto& node) {
  return normalized_domain(node.domain()).empty() &&
         (node.op_type() == "Shape" || node.op_type() == "Size");
}

DataFlow::DataFlow(const Model& model) : index_(model.proto().graph()) {
  const onnx::GraphProto& graph = index_.graph();
  const std::vector<Value>& values = index_.values();
  const std::size_t count = values.size();
  const auto node_count = at(graph.node_size());
  names_.reserve(count);
  for (const Value& value : values) names_.emplace_back(value.name);
  is_source_.assign(count, false);
  is_output_.assign(count, false);
  for (std::size_t i = 0; i < count; ++i) is_output_[i] = values[i].is_output;
  const std::vector<TensorInfo> inputs = model.inputs();
  const auto is_image = [](const TensorInfo& info) { return info.shape.size() >= kImageRank; };
  const bool has_image = std::any_of(inputs.begin(), inputs.end(), is_image);
  for (const TensorInfo& info : inputs) {
    if (has_image && !is_image(info)) continue;
    const int id = find(info.name);
    if (id < 0) continue;
    sources_.push_back(id);
    is_source_[at(id)] = true;
  }

  // Forward: what depends on a source. Then backward: what an output needs of it.
  std::vector<int> order(node_count);
  std::iota(order.begin(), order.end(), 0);
  if (auto sorted = topological_order(graph); sorted.ok()) order = std::move(*sorted);
  std::vector<TensorIds> reads(node_count), makes(node_count);
  TensorSet depends = is_source_;
  for (const int n : order) {
    const onnx::NodeProto& node = graph.node(n);
    if (hands_on_no_values(node)) continue;
    const auto read = [&](std::string_view name) {
      if (const int id = find(name); id >= 0 && depends[at(id)]) add_once(reads[at(n)], id);
    };
    // CastLike takes the dtype of its second input, no value: the dynamo exporter writes the
    // constants of GroupNormalization so.
    const bool first_only =
        normalized_domain(node.domain()).empty() && node.op_type() == "CastLike";
    for (int i = 0; i < (first_only ? 1 : node.input_size()); ++i) read(node.input(i));
    for (const std::string_view name : index_.captures(n)) read(name);
    if (reads[at(n)].empty()) continue;
    for (const std::string& name : node.output()) {
      const int id = find(name);
      if (id < 0) continue;
      depends[at(id)] = true;
      makes[at(n)].push_back(id);
    }
  }
  carries_.assign(count, false);
  for (std::size_t i = 0; i < count; ++i) carries_[i] = depends[i] && is_output_[i];
  producers_.assign(count, -1);
  readers_.resize(count);
  inputs_.resize(node_count);
  outputs_.resize(node_count);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const int n = *it;
    for (const int id : makes[at(n)])
      if (carries_[at(id)]) outputs_[at(n)].push_back(id);
    if (outputs_[at(n)].empty()) continue;
    nodes_.push_back(n);
    inputs_[at(n)] = reads[at(n)];
    for (const int id : outputs_[at(n)]) producers_[at(id)] = n;
    for (const int id : inputs_[at(n)]) carries_[at(id)] = true;
  }
  std::reverse(nodes_.begin(), nodes_.end());
  for (const int n : nodes_)
    for (const int id : inputs_[at(n)]) readers_[at(id)].push_back(n);
}

const onnx::NodeProto& DataFlow::node(int node) const { return graph().node(node); }

int DataFlow::find(std::string_view name) const {
  if (name.empty()) return -1;
  const Value* value = index_.find(name);
  return value == nullptr ? -1 : static_cast<int>(value - index_.values().data());
}

int DataFlow::input_at(int node, int input) const {
  const onnx::NodeProto& proto = graph().node(node);
  if (input >= proto.input_size()) return -1;
  const int id = find(proto.input(input));
  return id >= 0 && carries(id) ? id : -1;
}

TensorSet DataFlow::ancestors(const TensorIds& of, const TensorSet& stop) const {
  TensorSet seen(tensors(), false);
  TensorIds stack;
  const auto visit = [&](int id) {
    if (seen[at(id)] || (!stop.empty() && stop[at(id)])) return;
    seen[at(id)] = true;
    stack.push_back(id);
  };
  for (const int id : of) visit(id);
  while (!stack.empty()) {
    const int id = stack.back();
    stack.pop_back();
    if (producer(id) < 0) continue;
    for (const int input : inputs(producer(id))) visit(input);
  }
  return seen;
}

TensorSet DataFlow::descendants(const std::vector<int>& nodes) const {
  TensorSet seen(tensors(), false);
  TensorIds stack;
  const auto visit = [&](int node) {
    for (const int id : outputs(node)) {
      if (seen[at(id)]) continue;
      seen[at(id)] = true;
      stack.push_back(id);
    }
  };
  for (const int node : nodes) visit(node);
  while (!stack.empty()) {
    const int id = stack.back();
    stack.pop_back();
    for (const int node : readers(id)) visit(node);
  }
  return seen;
}

TensorIds DataFlow::frontier(const TensorSet& set) const {
  TensorIds out;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (!set[i]) continue;
    const int id = static_cast<int>(i);
    const auto leaves = [&](int node) {
      return std::any_of(outputs(node).begin(), outputs(node).end(),
                         [&](int made) { return !set[at(made)]; });
    };
    if (is_output_[i] || std::any_of(readers(id).begin(), readers(id).end(), leaves))
      out.push_back(id);
  }
  return out;
}

}  // namespace tenonnx
