// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/peak_memory.h"

#include <onnx/onnx_pb.h>

#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

namespace tenonnx {

std::optional<PeakMemory> peak_memory(const GraphIndex& index, const TensorInfos& infos,
                                      std::span<const int> nodes) {
  const onnx::GraphProto& graph = index.graph();
  std::unordered_map<int, std::int64_t> freed_after;  // by the node that uses it last
  PeakMemory peak;
  std::int64_t alive = 0;
  for (const int i : nodes) {
    for (const std::string& name : graph.node(i).output()) {
      if (name.empty()) continue;
      const auto info = infos.find(name);
      if (info == infos.end() || !info->second.has_rank) return std::nullopt;
      const std::int64_t count = element_count(info->second.shape);
      if (count < 0 || info->second.dtype == DType::kUndefined) return std::nullopt;
      const std::int64_t bytes = count * static_cast<std::int64_t>(size_of(info->second.dtype));
      alive += bytes;
      const Value* value = index.find(name);
      int last = i;
      for (const Use& use : value->uses) last = std::max(last, use.node);
      if (!value->is_output) freed_after[last] += bytes;
    }
    if (alive > peak.bytes) peak = {alive, i};
    // What is used last by a node of this set; what lies behind the set stays.
    if (const auto it = freed_after.find(i); it != freed_after.end()) alive -= it->second;
  }
  return peak;
}

std::optional<PeakMemory> peak_memory(const Model& model) {
  const GraphIndex index(model.proto().graph());
  std::vector<int> all(static_cast<std::size_t>(model.proto().graph().node_size()));
  std::iota(all.begin(), all.end(), 0);
  return peak_memory(index, infer_shapes(model), all);
}

}  // namespace tenonnx
