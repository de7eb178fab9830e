// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The same model under other names and in another order, for tests.
#pragma once

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "model/graph.h"
#include "model/model.h"

namespace tenonnx {

struct Scrambled {
  Model model;
  std::map<std::string, std::string> old_names;  // new name -> old name, of all tensors
};

// Every tensor and node gets a name of random letters, bodies included, and the nodes another
// topological order: at each step any of those that are ready.
inline Scrambled scramble(const Model& model, unsigned seed) {
  std::mt19937 random(seed);
  onnx::ModelProto proto = model.proto();
  std::map<std::string, std::string> names;
  const auto rename = [&](std::string* name) {
    if (name->empty()) return;
    auto [it, added] = names.try_emplace(*name);
    if (added) {
      for (int i = 0; i < 12; ++i) it->second += static_cast<char>('a' + random() % 26);
      it->second += std::to_string(names.size());
    }
    *name = it->second;
  };
  for_each_graph(*proto.mutable_graph(), [&](onnx::GraphProto& graph) {
    for (auto& node : *graph.mutable_node()) {
      node.set_name(std::to_string(random()));
      for (auto& name : *node.mutable_input()) rename(&name);
      for (auto& name : *node.mutable_output()) rename(&name);
    }
    for (auto& value : *graph.mutable_input()) rename(value.mutable_name());
    for (auto& value : *graph.mutable_output()) rename(value.mutable_name());
    for (auto& value : *graph.mutable_value_info()) rename(value.mutable_name());
    for (auto& tensor : *graph.mutable_initializer()) rename(tensor.mutable_name());
  });

  onnx::GraphProto& graph = *proto.mutable_graph();
  const GraphIndex index(graph);
  const auto count = static_cast<std::size_t>(graph.node_size());
  std::vector<std::vector<int>> readers(count);
  std::vector<int> waits(count, 0);
  for (int n = 0; n < graph.node_size(); ++n) {
    const auto read = [&](std::string_view name) {
      const Value* value = index.find(name);
      if (value == nullptr || value->producer < 0) return;
      readers[static_cast<std::size_t>(value->producer)].push_back(n);
      ++waits[static_cast<std::size_t>(n)];
    };
    for (const auto& name : graph.node(n).input()) read(name);
    for (const auto name : index.captures(n)) read(name);
  }
  std::vector<int> ready, order;
  for (std::size_t n = 0; n < count; ++n)
    if (waits[n] == 0) ready.push_back(static_cast<int>(n));
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const int n = ready.back();
    ready.pop_back();
    order.push_back(n);
    for (const int reader : readers[static_cast<std::size_t>(n)])
      if (--waits[static_cast<std::size_t>(reader)] == 0) ready.push_back(reader);
  }
  EXPECT_EQ(order.size(), count);
  std::vector<onnx::NodeProto> nodes;
  for (const int n : order) nodes.push_back(graph.node(n));
  graph.clear_node();
  for (onnx::NodeProto& node : nodes) *graph.add_node() = std::move(node);

  Scrambled out{model.with_proto(std::make_unique<onnx::ModelProto>(std::move(proto))), {}};
  for (const auto& [old_name, new_name] : names) out.old_names[new_name] = old_name;
  return out;
}

}  // namespace tenonnx
