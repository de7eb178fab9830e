// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "cut/separator.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tenonnx {
namespace {

class Need {
 public:
  Need(const GraphIndex& index, std::vector<bool>& nodes) : index_(index), nodes_(nodes) {}

  void walk(std::vector<std::string_view> stack, const std::unordered_set<std::string_view>& stop) {
    while (!stack.empty()) {
      const std::string_view name = stack.back();
      stack.pop_back();
      if (name.empty()) continue;
      if (stop.contains(name)) {
        reached_.insert(name);
        continue;
      }
      const Value* value = index_.find(name);
      if (value == nullptr) continue;
      if (value->producer < 0) {
        if (!value->is_initializer()) inputs_.insert(name);
        continue;
      }
      const auto node = static_cast<std::size_t>(value->producer);
      if (nodes_[node]) continue;
      nodes_[node] = true;
      for (const auto& input : index_.graph().node(value->producer).input()) stack.push_back(input);
      for (const auto& captured : index_.captures(value->producer)) stack.push_back(captured);
    }
  }
  bool reached(std::string_view name) const { return reached_.contains(name); }
  bool input(std::string_view name) const { return inputs_.contains(name); }

 private:
  const GraphIndex& index_;
  std::vector<bool>& nodes_;
  std::unordered_set<std::string_view> reached_, inputs_;
};

}  // namespace

Sides sides_of(const GraphIndex& index, const std::vector<std::string>& cut) {
  const auto nodes = static_cast<std::size_t>(index.graph().node_size());
  Sides out;
  out.before.assign(nodes, false);
  out.behind.assign(nodes, false);
  Need first(index, out.before), second(index, out.behind);
  first.walk({cut.begin(), cut.end()}, {});
  std::vector<std::string_view> outputs;
  for (const auto& output : index.graph().output()) outputs.push_back(output.name());
  second.walk(std::move(outputs), {cut.begin(), cut.end()});
  for (const std::string& name : cut) out.used.push_back(second.reached(name));
  for (const auto& input : index.graph().input())
    if (first.input(input.name()) && second.input(input.name()))
      out.shared_inputs.push_back(input.name());
  return out;
}

}  // namespace tenonnx
