// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/device_needs.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "adapters/node_facts.h"
#include "base/wording.h"
#include "passes/gelu_pattern.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

constexpr std::int64_t kLowestOpset = 13, kGeluOpset = 20;  // of convert_opset; of the operator

std::string label(const onnx::NodeProto& node) {
  return node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
}

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

// Of every Erf: whether a GELU is made of it, else why not (empty where it looks like none).
struct Gelus {
  std::set<int> within;
  std::map<int, std::string> nearly;
};

Gelus gelus_of(const Model& model) {
  Gelus out;
  Model copy = model.clone();
  const Rewriter graph(copy);
  for (int i = 0; i < graph.size(); ++i) {
    if (!is_op(graph.node(i), "Erf")) continue;
    std::string reason;
    if (match_gelu(graph, i, reason))
      out.within.insert(i);
    else if (!reason.empty())
      out.nearly[i] = reason;
  }
  return out;
}

bool has_erf(const Model& model) {
  const auto& nodes = model.proto().graph().node();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const onnx::NodeProto& node) { return is_op(node, "Erf"); });
}

std::string advice_for(std::string_view type) {
  if (type == "Erf") return "within a GELU it is taken, alone it is not: cut before it";
  if (type == "GridSample") return "rewrite --pass replace_grid_sample_gather replaces it";
  return "";
}

// How many nodes the rules take at this opset, whatever the model's.
std::size_t taken_at(const std::vector<NodeFacts>& facts, const Device& device,
                     std::int64_t opset) {
  return static_cast<std::size_t>(
      std::count_if(facts.begin(), facts.end(), [&](const NodeFacts& node) {
        NodeFacts moved = node;
        if (node.domain.empty()) moved.opset = opset;
        return find_support(device.supported, moved).rule != nullptr;
      }));
}

}  // namespace

std::vector<NotTaken> not_taken(const Model& model, const Device& device) {
  if (device.supported.empty()) return {};
  const auto facts = node_facts(model);
  const onnx::GraphProto& graph = model.proto().graph();
  const Gelus gelus = has_erf(model) ? gelus_of(model) : Gelus();
  std::vector<NotTaken> out;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const int index = static_cast<int>(i);
    const onnx::NodeProto& node = graph.node(index);
    if (node.op_type() == "Constant" || gelus.within.contains(index)) continue;
    const Support support = find_support(device.supported, facts[i]);
    if (support.rule != nullptr) continue;
    std::string why = support.why_not;
    if (const auto nearly = gelus.nearly.find(index); nearly != gelus.nearly.end())
      why += fmt::format(" (nearly a GELU: {})", nearly->second);
    const auto same = [&](const NotTaken& one) {
      return one.op_type == node.op_type() && one.reason == why;
    };
    auto found = std::find_if(out.begin(), out.end(), same);
    if (found == out.end())
      found = out.insert(out.end(), {node.op_type(), why, advice_for(node.op_type()), {}});
    found->nodes.push_back(label(node));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const NotTaken& a, const NotTaken& b) { return a.op_type < b.op_type; });
  return out;
}

std::string describe(const NotTaken& one, const Device& device) {
  return fmt::format("devices/{} does not take {}, first '{}': {}{}{}",
                     device.file.filename().string(),
                     counted(one.nodes.size(), one.op_type, one.op_type), one.nodes.front(),
                     one.reason, one.advice.empty() ? "" : "; ", one.advice);
}

Json to_json(const std::vector<NotTaken>& nodes) {
  Json out = Json::array();
  for (const NotTaken& one : nodes) {
    out.push_back({{"operator", one.op_type}, {"reason", one.reason}, {"nodes", one.nodes}});
    if (!one.advice.empty()) out.back()["advice"] = one.advice;
  }
  return out;
}

std::optional<DeviceNeed> need_lower_rank(const Model& model, const Device& device) {
  const std::int64_t rank = largest_rank(device);
  const auto facts = node_facts(model);
  std::size_t count = 0;
  std::string first;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (!exceeds(facts[i], rank)) continue;
    if (count++ == 0) first = label(model.proto().graph().node(static_cast<int>(i)));
  }
  if (count == 0) return std::nullopt;
  return DeviceNeed{
      fmt::format("{} above rank {}, first '{}'", counted(count, "node"), rank, first), rank};
}

std::optional<DeviceNeed> need_other_opset(const Model& model, const Device& device) {
  const auto facts = node_facts(model);
  const std::int64_t now = model.opset();
  const std::size_t taken = taken_at(facts, device, now);
  if (taken == facts.size()) return std::nullopt;
  std::int64_t best = now;
  std::size_t most = taken;
  for (std::int64_t opset = kLowestOpset; opset <= kMaxOpset; ++opset) {
    const std::size_t count = taken_at(facts, device, opset);
    if (count < most || (count == most && std::abs(opset - now) >= std::abs(best - now))) continue;
    best = opset;
    most = count;
  }
  if (best == now) return std::nullopt;
  return DeviceNeed{fmt::format("of {} the rules take {} at opset {} and {} at opset {}",
                                counted(facts.size(), "node"), taken, now, most, best),
                    best};
}

std::optional<DeviceNeed> need_gelu(const Model& model, const Device& device) {
  if (model.opset() < kGeluOpset || !has_erf(model)) return std::nullopt;
  const Gelus gelus = gelus_of(model);
  if (gelus.within.empty()) return std::nullopt;
  const auto facts = node_facts(model);
  const int erf = *gelus.within.begin();
  NodeFacts node = facts[static_cast<std::size_t>(erf)];
  if (find_support(device.supported, node).rule != nullptr) return std::nullopt;
  node.op_type = "Gelu";
  if (find_support(device.supported, node).rule == nullptr) return std::nullopt;
  return DeviceNeed{fmt::format("{} of a GELU, first '{}': the rules take Gelu, and no Erf",
                                counted(gelus.within.size(), "Erf", "Erf"),
                                label(model.proto().graph().node(erf))),
                    0};
}

}  // namespace tenonnx
