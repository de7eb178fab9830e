// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/prepare_for_device.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <set>

#include "adapters/node_facts.h"
#include "base/status.h"
#include "base/wording.h"

namespace tenonnx {
namespace {

constexpr std::int64_t kCollapseOpset = 11;

struct Left {
  std::size_t count = 0;
  std::string first, why;
};

std::int64_t largest_rank(const Device& device) {
  std::int64_t out = 0;
  for (const SupportRule& rule : device.supported) out = std::max(out, rule.max_rank);
  return out;
}

bool exceeds(const NodeFacts& node, std::int64_t rank) {
  const auto above = [&](const OperandFacts& one) {
    return one.has_rank && static_cast<std::int64_t>(one.shape.size()) > rank;
  };
  return std::any_of(node.inputs.begin(), node.inputs.end(), above) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), above);
}

// Nodes Erf of x * (1 + erf(x / c)) in either order: what the Erf makes is added to, and the sum is
// multiplied.
std::set<std::string> within_gelu(const onnx::GraphProto& graph) {
  std::map<std::string, std::vector<const onnx::NodeProto*>> users;
  for (const onnx::NodeProto& node : graph.node())
    for (const std::string& input : node.input()) users[input].push_back(&node);
  const auto only = [&](const std::string& tensor,
                        std::string_view type) -> const onnx::NodeProto* {
    const auto found = users.find(tensor);
    if (found == users.end() || found->second.size() != 1) return nullptr;
    return found->second[0]->op_type() == type ? found->second[0] : nullptr;
  };
  std::set<std::string> out;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != "Erf") continue;
    const onnx::NodeProto* add = only(node.output(0), "Add");
    if (add != nullptr && only(add->output(0), "Mul") != nullptr) out.insert(node.output(0));
  }
  return out;
}

std::string_view pass_for(std::string_view type) {
  if (type == "Erf") return "; rewrite --pass fuse_gelu makes GELU of it where it is one";
  if (type == "GridSample") return "; rewrite --pass replace_grid_sample_gather replaces it";
  return "";
}

std::vector<std::string> not_taken(const Model& model, const Device& device) {
  const auto facts = node_facts(model);
  const onnx::GraphProto& graph = model.proto().graph();
  const std::set<std::string> gelu = within_gelu(graph);
  std::map<std::string, Left> left;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const onnx::NodeProto& node = graph.node(static_cast<int>(i));
    if (node.op_type() == "Constant" || (node.output_size() > 0 && gelu.contains(node.output(0))))
      continue;
    const Support support = find_support(device.supported, facts[i]);
    if (support.rule != nullptr) continue;
    Left& one = left[node.op_type()];
    if (one.count++ > 0) continue;
    one.first = node.name().empty() ? node.output(0) : node.name();
    one.why = support.why_not;
  }
  std::vector<std::string> out;
  for (const auto& [type, one] : left)
    out.push_back(fmt::format("devices/{} does not take {}, first '{}': {}{}",
                              device.file.filename().string(), counted(one.count, type, type),
                              one.first, one.why, pass_for(type)));
  return out;
}

}  // namespace

Result<DevicePreparation> prepare_for_device(Model& prepared, const Device& device) {
  DevicePreparation out;
  if (device.supported.empty()) return out;
  const std::int64_t rank = largest_rank(device);
  const auto facts = node_facts(prepared);
  const bool high = std::any_of(facts.begin(), facts.end(),
                                [&](const NodeFacts& node) { return exceeds(node, rank); });
  if (high && prepared.opset() >= kCollapseOpset) {
    const std::vector<std::string> names = {"collapse_rank"};
    TENONNX_ASSIGN_OR_RETURN(
        out.passes,
        run_passes(prepared, names, {{"collapse_rank.max_rank", std::to_string(rank)}}));
  }
  out.notes = not_taken(prepared, device);
  return out;
}

}  // namespace tenonnx
