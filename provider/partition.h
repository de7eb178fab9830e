// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which nodes go together into one partition.
#pragma once

#include <vector>

namespace tenonnx::simnpu {

enum class Backend { kNone, kDevice, kHost };  // who computes a node: kNone is ONNX Runtime

struct PartitionNode {
  Backend backend = Backend::kNone;
  std::vector<int> predecessors;  // indices of nodes before this one
};

struct Partition {
  Backend backend = Backend::kDevice;
  std::vector<int> nodes;  // ascending
};

// Convex partitions: no path leaves one and comes back. `nodes` are in topological order.
//
// A node's level is the largest over its predecessors p of level(p), plus one where p has another
// backend; a partition is the nodes of one level and backend. Levels never fall along a path and
// rise where the backend changes, so that a path between two nodes of one level stays among them,
// and partitions in the order of their levels depend on earlier ones alone.
std::vector<Partition> convex_partitions(const std::vector<PartitionNode>& nodes);

}  // namespace tenonnx::simnpu
