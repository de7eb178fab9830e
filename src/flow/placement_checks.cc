// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/placement_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "adapters/provider_refusal.h"
#include "base/wording.h"

namespace tenonnx {
namespace {

constexpr std::size_t kListed = 6;

// "12 GridSample, 3 TopK, ..." of the nodes at `place`.
std::string operators_at(const PlacementResult& result, NodePlace place) {
  std::map<std::string, std::size_t> counts;
  for (const PlacedNode& node : result.nodes)
    if (node.place == place) ++counts[node.op_type];
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kListed); ++i)
    text += fmt::format("{}{} {}", i > 0 ? ", " : "", sorted[i].second, sorted[i].first);
  if (sorted.size() > kListed)
    text += ", " + counted(sorted.size() - kListed, "more type", "more types");
  return text;
}

Check none_of(const std::string& name, std::size_t count, std::string note) {
  return make_check(name, static_cast<double>(count), Comparison::kAtMost,
                    {0, "the model is meant for the device"}, std::move(note));
}

std::size_t taken(const ProviderRecord& record) {
  return static_cast<std::size_t>(
      std::count_if(record.assigned.begin(), record.assigned.end(),
                    [&](const AssignedNode& node) { return node.provider == record.provider; }));
}

std::size_t partitions(const ProviderRecord& record) {
  std::set<std::string> names;
  for (const VendorNode& node : record.vendor) names.insert(node.partition);
  return names.size();
}

}  // namespace

Check passed_check(std::string name) {
  return make_check(std::move(name), 0, Comparison::kAtMost, {0, "no error is allowed"});
}

Check failed_check(std::string name, std::string why) {
  return make_check(std::move(name), 1, Comparison::kAtMost, {0, "no error is allowed"},
                    std::move(why));
}

void add_placement_checks(const Fingerprint& fingerprint, const Placement& profile,
                          bool allow_fallback, PlacementResult& result) {
  const std::size_t device = result.count(NodePlace::kDevice);
  const std::size_t fallback = result.count(NodePlace::kFallback);
  const std::size_t host = result.count(NodePlace::kVendorCpu);
  const std::size_t unknown = result.count(NodePlace::kUnknown);
  const std::size_t on_cpu = fallback + result.count(NodePlace::kCpu);
  if (result.address != "cpu") {
    result.checks.push_back(make_check("nodes on the device", static_cast<double>(device),
                                       Comparison::kAtLeast, {1, "the provider is listed"}));
    if (device + host + unknown == 0)
      result.findings.push_back(listed_but_unused(result.provider, on_cpu, "ran"));
    if (!allow_fallback)
      result.checks.push_back(
          none_of("nodes that fell back", fallback, operators_at(result, NodePlace::kFallback)));
    else if (fallback > 0 && device > 0)
      result.findings.push_back(
          fmt::format("{} fell back to the CPU, which --allow-fallback allows: {}",
                      counted(fallback, "node"), operators_at(result, NodePlace::kFallback)));
  }
  if (fingerprint.looked_at > 0)
    result.checks.push_back(
        none_of("operators whose values are not the device's", fingerprint.mislabelled.size(),
                fingerprint.mislabelled.empty()
                    ? counted(fingerprint.looked_at, "node") + " looked at"
                    : fmt::format("{}: labelled as the device's and computed on the CPU; {}",
                                  fmt::join(fingerprint.mislabelled, ", "), fingerprint.example)));
  if (host > 0)
    result.findings.push_back(fmt::format(
        "{} in the vendor's own CPU backend, which no fallback rule of ONNX Runtime sees: {}",
        counted(host, "node ran", "nodes ran"), operators_at(result, NodePlace::kVendorCpu)));
  if (unknown > 0) {
    const auto first =
        std::find_if(result.nodes.begin(), result.nodes.end(),
                     [](const PlacedNode& node) { return node.place == NodePlace::kUnknown; });
    result.checks.push_back(inconclusive_check(
        "nodes whose place is not known",
        fmt::format("{}; first {} '{}': {}", operators_at(result, NodePlace::kUnknown),
                    first->op_type, first->node, first->why)));
  }
  if (!profile.disagreement.empty())
    result.checks.push_back(
        inconclusive_check("profile against assignment record", profile.disagreement));
}

void add_affinity_findings(const ProviderRecord& pinned, const ProviderRecord& without,
                           PlacementResult& result) {
  const std::size_t before = taken(without), after = taken(pinned);
  std::size_t meant = 0;
  for (const AssignedNode& node : without.assigned)
    meant += node.provider == without.provider && pinned.pinned.contains(node.op_type) ? 1 : 0;
  const std::size_t moved = before - std::min(before, after);
  const std::string names = fmt::format("{}", fmt::join(pinned.pinned, ", "));
  if (before > 0 && after == 0)
    result.findings.push_back(fmt::format(
        "pinning {} to the CPU moved everything there: {} of that type, {} of the device's {} "
        "moved. A result that is right now says nothing about {}",
        names, counted(meant, "node is", "nodes are"), moved, counted(before, "node"), names));
  else
    result.findings.push_back(fmt::format(
        "pinning {} to the CPU moved {}, {} of that type; partitions: {} before, {} now", names,
        counted(moved, "node"), meant, partitions(without), partitions(pinned)));
  result.checks.push_back(
      make_check("nodes moved by pinning", static_cast<double>(moved), Comparison::kAtMost,
                 {static_cast<double>(meant), "the nodes of the pinned operators on the device"},
                 moved > meant ? "more moved than was pinned" : ""));
}

}  // namespace tenonnx
