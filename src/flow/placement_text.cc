// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/wording.h"
#include "flow/placement_proof.h"
#include "flow/result_text.h"
#include "flow/split.h"

namespace tenonnx {
namespace {

constexpr std::size_t kListed = 12;  // rows of one table; --json has them all

std::string place_of(int partition) {
  return partition < 0 ? "CPU" : fmt::format("partition {}", partition);
}

std::string duration(std::int64_t us) {
  return us == 0 ? "" : fmt::format("{:.1f} ms", static_cast<double>(us) / 1000);
}

// Operator by operator, what is not on the device and why; the most nodes first.
std::string elsewhere(const PlacementResult& result) {
  struct Group {
    std::size_t count = 0;
    const PlacedNode* first = nullptr;
  };
  std::map<std::pair<NodePlace, std::string>, Group> groups;
  for (const PlacedNode& node : result.nodes) {
    if (node.place == NodePlace::kDevice || node.place == NodePlace::kFolded) continue;
    Group& group = groups[{node.place, node.op_type}];
    if (group.count++ == 0) group.first = &node;
  }
  std::vector<std::pair<std::pair<NodePlace, std::string>, Group>> sorted(groups.begin(),
                                                                          groups.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  if (sorted.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < std::min(sorted.size(), kListed); ++i)
    rows.push_back({std::to_string(sorted[i].second.count), sorted[i].first.second,
                    std::string(to_string(sorted[i].first.first)), sorted[i].second.first->why});
  std::string text = "not on the device\n" + aligned(rows, "  ");
  if (sorted.size() > kListed)
    text += fmt::format("  and {} (--json lists every node)\n",
                        counted(sorted.size() - kListed, "more operator type"));
  return text;
}

std::string boundaries(const PlacementResult& result) {
  std::int64_t bytes = 0;
  std::vector<std::vector<std::string>> rows;
  for (const PlacementBoundary& boundary : result.boundaries) {
    bytes += boundary.bytes;
    if (rows.size() < kListed)
      rows.push_back({place_of(boundary.from) + " -> " + place_of(boundary.to),
                      counted(boundary.tensors.size(), "tensor"), spell_bytes(boundary.bytes)});
  }
  std::string text = fmt::format("boundaries: {}, {} cross them in a run\n",
                                 result.boundaries.size(), spell_bytes(bytes));
  text += aligned(rows, "  ");
  if (result.boundaries.size() > kListed)
    text += fmt::format("  and {} more\n", result.boundaries.size() - kListed);
  return text;
}

}  // namespace

std::string describe(const PlacementResult& result) {
  std::string text =
      fmt::format("{}  {} on {}\n", to_string(result.verdict), result.model, result.address);
  std::string counts;
  for (const NodePlace place : {NodePlace::kDevice, NodePlace::kVendorCpu, NodePlace::kFallback,
                                NodePlace::kCpu, NodePlace::kUnknown, NodePlace::kFolded})
    if (const std::size_t count = result.count(place); count > 0)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, to_string(place));
  text += fmt::format("nodes: {}; {}\n", counts.empty() ? "none placed" : counts,
                      counted(result.partitions.size(), "partition"));
  text += checks_table(result.checks);
  for (const std::string& finding : result.findings) text += finding + "\n";
  if (!result.causes.empty()) text += "likely causes\n";
  for (const std::string& cause : result.causes) text += "  - " + cause + "\n";
  text += elsewhere(result);
  if (result.partitions.empty()) return text;
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < std::min(result.partitions.size(), kListed); ++i) {
    const PlacedPartition& one = result.partitions[i];
    rows.push_back({std::to_string(i), counted(one.nodes, "node"),
                    std::string(to_string(one.place)), duration(one.duration_us)});
  }
  text += "partitions\n" + aligned(rows, "  ");
  if (result.partitions.size() > kListed)
    text += fmt::format("  and {} more\n", result.partitions.size() - kListed);
  return text + boundaries(result);
}

Json to_json(const PlacementResult& result) {
  const auto list = [](const std::vector<PlacementBoundary>& boundaries) {
    Json json = Json::array();
    for (const PlacementBoundary& one : boundaries)
      json.push_back({{"from", one.from < 0 ? Json("cpu") : Json(one.from)},
                      {"to", one.to < 0 ? Json("cpu") : Json(one.to)},
                      {"tensors", one.tensors},
                      {"bytes", one.bytes}});
    return json;
  };
  Json nodes = Json::array(), partitions = Json::array(), counts = Json::object();
  for (const PlacedNode& node : result.nodes) {
    Json one = {{"node", node.node}, {"op_type", node.op_type}, {"place", to_string(node.place)}};
    if (node.partition >= 0) one["partition"] = node.partition;
    if (!node.why.empty()) one["why"] = node.why;
    nodes.push_back(std::move(one));
  }
  for (const PlacedPartition& one : result.partitions)
    partitions.push_back({{"name", one.name},
                          {"place", to_string(one.place)},
                          {"nodes", one.nodes},
                          {"duration_us", one.duration_us}});
  for (const NodePlace place : {NodePlace::kDevice, NodePlace::kVendorCpu, NodePlace::kFallback,
                                NodePlace::kCpu, NodePlace::kUnknown, NodePlace::kFolded})
    counts[std::string(to_string(place))] = result.count(place);
  return {{"schema_version", 1},
          {"model", result.model},
          {"executor", result.address},
          {"provider", result.provider},
          {"verdict", to_string(result.verdict)},
          {"counts", std::move(counts)},
          {"checks", to_json(std::span<const Check>(result.checks))},
          {"findings", result.findings},
          {"causes", result.causes},
          {"boundaries", list(result.boundaries)},
          {"inputs", list(result.inputs)},
          {"outputs", list(result.outputs)},
          {"partitions", std::move(partitions)},
          {"nodes", std::move(nodes)}};
}

}  // namespace tenonnx
