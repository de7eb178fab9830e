// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/default_inputs.h"

#include <onnx/onnx_pb.h>

#include <string>

namespace tenonnx {
namespace {

constexpr std::int64_t kFirstIrWithDefaults = 4;

// Names that are in both lists.
template <typename Name>
std::unordered_set<Name> stored_inputs(const onnx::GraphProto& graph) {
  std::unordered_set<std::string_view> stored;
  for (const auto& t : graph.initializer()) stored.insert(t.name());
  for (const auto& s : graph.sparse_initializer()) stored.insert(s.values().name());
  std::unordered_set<Name> both;
  for (const auto& input : graph.input())
    if (stored.contains(input.name())) both.emplace(input.name());
  return both;
}

}  // namespace

std::unordered_set<std::string_view> default_inputs(const onnx::ModelProto& model) {
  if (model.ir_version() < kFirstIrWithDefaults) return {};
  return stored_inputs<std::string_view>(model.graph());
}

int pin_default_inputs(onnx::ModelProto& model) {
  const auto stored = stored_inputs<std::string>(model.graph());
  if (stored.empty()) return 0;
  auto& inputs = *model.mutable_graph()->mutable_input();
  int kept = 0;
  for (int i = 0; i < inputs.size(); ++i)
    if (!stored.contains(inputs.Get(i).name())) inputs.SwapElements(i, kept++);
  const int pinned = inputs.size() - kept;
  inputs.DeleteSubrange(kept, pinned);
  return pinned;
}

}  // namespace tenonnx
