// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "partition.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace tenonnx::simnpu {

std::vector<Partition> convex_partitions(const std::vector<PartitionNode>& nodes) {
  std::vector<int> level(nodes.size(), 0);
  std::map<std::pair<int, Backend>, Partition> groups;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Backend backend = nodes[i].backend;
    for (const int p : nodes[i].predecessors) {
      const auto before = static_cast<std::size_t>(p);
      level[i] = std::max(level[i], level[before] + (nodes[before].backend == backend ? 0 : 1));
    }
    if (backend == Backend::kNone) continue;
    Partition& group = groups[{level[i], backend}];
    group.backend = backend;
    group.nodes.push_back(static_cast<int>(i));
  }
  std::vector<Partition> partitions;
  for (auto& [key, group] : groups) partitions.push_back(std::move(group));
  return partitions;
}

}  // namespace tenonnx::simnpu
