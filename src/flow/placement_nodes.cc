// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/placement_nodes.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "adapters/node_facts.h"
#include "model/crossings.h"
#include "model/tensor_proto.h"
#include "passes/inference.h"

namespace tenonnx {
namespace {

constexpr std::string_view kCpuProvider = "CPUExecutionProvider";

// What a layout transformation merges into other nodes.
bool moves_only(std::string_view type) {
  return type == "Transpose" || type == "Reshape" || type == "Squeeze" || type == "Unsqueeze" ||
         type == "Identity";
}

class Placer {
 public:
  Placer(const PlacementEvidence& evidence, PlacementResult& result)
      : e_(evidence), result_(result), facts_(node_facts(evidence.prepared)) {
    for (const NodePlacement& node : e_.profile.nodes) profile_[node.node] = &node;
    if (e_.record == nullptr) return;
    for (const AssignedNode& node : e_.record->assigned) assigned_[node.name] = &node;
    for (const VendorNode& node : e_.record->vendor) vendor_[node.node] = &node;
  }

  void run() {
    const onnx::GraphProto& graph = e_.prepared.proto().graph();
    std::unordered_map<std::string, int> position;
    for (int i = 0; i < graph.node_size(); ++i) position[graph.node(i).name()] = i;
    std::vector<bool> listed(static_cast<std::size_t>(graph.node_size()), false);
    for (const onnx::NodeProto& node : e_.original.proto().graph().node()) {
      const auto it = position.find(node.name());
      if (it == position.end()) {
        result_.nodes.push_back({node.name(), node.op_type(), NodePlace::kFolded, -1, ""});
        continue;
      }
      listed[static_cast<std::size_t>(it->second)] = true;
      result_.nodes.push_back(place(it->second));
    }
    for (int i = 0; i < graph.node_size(); ++i)
      if (!listed[static_cast<std::size_t>(i)]) result_.nodes.push_back(place(i));
    // What was merged into the only partition there is lies within it: nothing crosses to the CPU.
    if (result_.partitions.size() != 1) return;
    for (PlacedNode& node : result_.nodes)
      if (merged_.contains(node.node)) node.partition = 0;
  }

 private:
  PlacedNode place(int index) {
    const onnx::NodeProto& node = e_.prepared.proto().graph().node(index);
    PlacedNode placed{node.name(), node.op_type(), NodePlace::kUnknown, -1, ""};
    if (e_.record == nullptr) {
      without_record(placed);
      return placed;
    }
    const auto assigned = assigned_.find(node.name());
    if (assigned == assigned_.end()) {
      if (e_.record->relayouts && moves_only(node.op_type())) {
        placed.place = NodePlace::kFolded;
        merged_.insert(node.name());
      } else {
        placed.why = "it is not in ONNX Runtime's assignment record";
      }
    } else if (assigned->second->provider == e_.record->provider) {
      on_provider(*assigned->second, facts_[static_cast<std::size_t>(index)], placed);
    } else {
      on_cpu(facts_[static_cast<std::size_t>(index)], placed);
    }
    return placed;
  }

  // The executor's own word, as placement.json: its nodes are the model's, or fusions of them.
  void without_record(PlacedNode& placed) const {
    const auto ran = profile_.find(placed.node);
    if (ran == profile_.end()) {
      placed.why = "the profile does not have it";
      return;
    }
    const bool cpu = ran->second->provider == kCpuProvider;
    const bool meant = result_.address == "cpu";
    placed.place = !cpu ? NodePlace::kDevice : meant ? NodePlace::kCpu : NodePlace::kFallback;
  }

  void on_cpu(const NodeFacts& facts, PlacedNode& placed) const {
    if (e_.record->pinned.contains(placed.op_type)) {
      placed.place = NodePlace::kCpu;
      placed.why = "pinned to the CPU";
      return;
    }
    placed.place = NodePlace::kFallback;
    if (e_.device != nullptr) placed.why = find_support(e_.device->supported, facts).why_not;
    // Certainly not on the device: ONNX Runtime has removed it (a cast to the same type), or no
    // branch came to it.
    if (!profile_.contains(placed.node)) placed.why = "assigned to the CPU; it did not run";
    if (placed.why.empty())
      placed.why = e_.device != nullptr ? "the device file takes it, the provider did not"
                                        : "the provider did not take it";
  }

  void on_provider(const AssignedNode& assigned, const NodeFacts& facts, PlacedNode& placed) {
    const auto vendor = vendor_.find(placed.node);
    if (vendor == vendor_.end() && placed.op_type == "EPContext" && !e_.run_failed) {
      if (const NodePlacement* ran = compiled_partition(placed.node)) {
        placed.place = NodePlace::kDevice;
        placed.partition = partition(placed.node, *ran, placed.place);
        return;
      }
    }
    if (vendor == vendor_.end()) {
      placed.why =
          fmt::format("assigned to {}, whose own record does not have it", e_.record->provider);
      return;
    }
    const std::string& name = vendor->second->partition;
    const auto ran = profile_.find(name);
    if (ran == profile_.end() || ran->second->provider != assigned.provider) {
      placed.why = "its partition is not in the profile: it did not run";
      return;
    }
    const Support support =
        e_.device != nullptr ? find_support(e_.device->supported, facts) : Support{};
    const bool host = vendor->second->backend == "host";
    if (e_.run_failed) {
      placed.why = "the run failed";
    } else if (host) {
      placed.place = NodePlace::kVendorCpu;
      placed.why = "the provider's own record says so";
    } else if (e_.mislabelled.contains(placed.op_type)) {
      placed.place = NodePlace::kVendorCpu;
      placed.why = "labelled as the device's, and its values are none that the device can store";
    } else if (!support.why_not.empty()) {
      placed.why = "labelled as the device's, which has no such kernel: " + support.why_not;
    } else {
      placed.place = NodePlace::kDevice;
    }
    placed.partition = partition(name, *ran->second, placed.place);
  }

  // What ran for a compiled partition (EPContext): under its own name, or, with a provider that
  // names what it runs anew, the only thing that can be it: the provider ran as many as the model
  // has.
  const NodePlacement* compiled_partition(const std::string& name) const {
    std::vector<const NodePlacement*> ran;
    std::vector<std::string> compiled;
    for (const NodePlacement& node : e_.profile.nodes)
      if (node.provider == e_.record->provider) ran.push_back(&node);
    for (const onnx::NodeProto& node : e_.prepared.proto().graph().node())
      if (node.op_type() == "EPContext") compiled.push_back(node.name());
    for (const NodePlacement* node : ran)
      if (node->node == name) return node;
    const auto at = std::find(compiled.begin(), compiled.end(), name);
    if (ran.size() != compiled.size() || at == compiled.end()) return nullptr;
    return ran[static_cast<std::size_t>(at - compiled.begin())];
  }

  int partition(const std::string& name, const NodePlacement& ran, NodePlace place) {
    const auto [it, is_new] =
        partitions_.try_emplace(name, static_cast<int>(result_.partitions.size()));
    if (is_new) result_.partitions.push_back({name, place, 0, ran.duration_us});
    PlacedPartition& one = result_.partitions[static_cast<std::size_t>(it->second)];
    ++one.nodes;
    if (one.place != place) one.place = NodePlace::kUnknown;
    return it->second;
  }

  const PlacementEvidence& e_;
  PlacementResult& result_;
  const std::vector<NodeFacts> facts_;
  std::unordered_map<std::string, const NodePlacement*> profile_;
  std::unordered_map<std::string, const AssignedNode*> assigned_;
  std::unordered_map<std::string, const VendorNode*> vendor_;
  std::map<std::string, int> partitions_;
  std::set<std::string> merged_;  // by a layout transformation
};

std::int64_t bytes_of(const InferredTypes& types, const std::string& tensor) {
  const auto it = types.find(tensor);
  if (it == types.end() || !it->second.is_static()) return 0;
  return element_count(it->second.shape) *
         static_cast<std::int64_t>(size_of(from_onnx_type(it->second.onnx_type)));
}

void add(std::vector<PlacementBoundary>& list, int from, int to, const std::string& tensor,
         std::int64_t bytes) {
  for (PlacementBoundary& boundary : list) {
    if (boundary.from != from || boundary.to != to) continue;
    boundary.tensors.push_back(tensor);
    boundary.bytes += bytes;
    return;
  }
  list.push_back({from, to, {tensor}, bytes});
}

}  // namespace

void place_nodes(const PlacementEvidence& evidence, PlacementResult& result) {
  Placer(evidence, result).run();
}

void find_boundaries(const Model& prepared, PlacementResult& result) {
  std::unordered_map<std::string, int> partition;
  for (const PlacedNode& node : result.nodes) partition[node.node] = node.partition;
  // Group 0 is the CPU, group n + 1 partition n.
  std::vector<int> group_of;
  for (const onnx::NodeProto& node : prepared.proto().graph().node())
    group_of.push_back(partition[node.name()] + 1);
  const Inference inference = infer(prepared);
  for (const Crossing& crossing : find_crossings(prepared.proto().graph(), group_of)) {
    const std::int64_t bytes = bytes_of(inference.graphs[0], crossing.tensor);
    for (const int to : crossing.to) {
      if (crossing.from >= 0)
        add(result.boundaries, crossing.from - 1, to - 1, crossing.tensor, bytes);
      else if (to > 0)
        add(result.inputs, -1, to - 1, crossing.tensor, bytes);
    }
    if (crossing.is_output && crossing.from > 0)
      add(result.outputs, crossing.from - 1, -1, crossing.tensor, bytes);
  }
}

}  // namespace tenonnx
