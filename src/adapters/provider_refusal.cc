// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/provider_refusal.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "adapters/node_facts.h"
#include "base/wording.h"

namespace tenonnx {
namespace {

constexpr std::size_t kListed = 6;  // operator types in an error

struct Left {
  std::size_t count = 0;
  std::string first, why;
};

}  // namespace

std::string listed_but_unused(const std::string& provider, std::size_t nodes,
                              std::string_view ran) {
  return fmt::format(
      "{} is listed by the session, and all {} {} on CPUExecutionProvider: nothing of the model {} "
      "on the device",
      provider, counted(nodes, "node"), ran, ran);
}

std::vector<std::string> causes_of_unused(const Device& device) {
  return {
      fmt::format("the option that names the chip (soc) is not '{}': providers warn in their "
                  "log and take nothing",
                  device.name),
      "the backend library is missing, or that of the CPU backend was given",
      "the model is outside of what the compiler takes as a whole: dynamic shapes, opset, dtype",
      "an operator was pinned to the CPU, and the compiler takes the graph whole or not at all"};
}

std::string explain_refusal(const std::string& provider, const Device& device, const Model& model,
                            const std::vector<AssignedNode>& assigned) {
  const auto facts = node_facts(model);
  std::unordered_map<std::string, std::size_t> position;
  for (std::size_t i = 0; i < facts.size(); ++i)
    position[model.proto().graph().node(static_cast<int>(i)).name()] = i;
  std::map<std::string, Left> left;
  std::size_t count = 0;
  for (const AssignedNode& node : assigned) {
    if (node.provider == provider) continue;
    ++count;
    Left& one = left[node.op_type];
    if (one.count++ > 0) continue;
    one.first = node.name;
    if (const auto it = position.find(node.name); it != position.end())
      one.why = find_support(device.supported, facts[it->second]).why_not;
    if (one.why.empty()) one.why = "the device file takes it, the provider did not";
  }
  if (count == assigned.size()) {
    std::string text = listed_but_unused(provider, count, "would run") + ". Likely causes:";
    for (const std::string& cause : causes_of_unused(device)) text += "\n    " + cause;
    return text;
  }
  std::vector<std::pair<std::string, Left>> sorted(left.begin(), left.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  std::string text =
      fmt::format("{} of {} would run on the CPU, and falling back was forbidden:", count,
                  counted(assigned.size(), "node"));
  for (std::size_t i = 0; i < std::min(sorted.size(), kListed); ++i)
    text += fmt::format("\n    {} {}, first '{}': {}", sorted[i].second.count, sorted[i].first,
                        sorted[i].second.first, sorted[i].second.why);
  if (sorted.size() > kListed)
    text += fmt::format("\n    and {}", counted(sorted.size() - kListed, "operator type"));
  return text + "\n  Cut the graph before them.";
}

}  // namespace tenonnx
