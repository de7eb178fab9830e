// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace tenonnx::simnpu {
namespace {

constexpr Backend N = Backend::kNone, D = Backend::kDevice, H = Backend::kHost;

std::vector<std::vector<int>> groups(const std::vector<PartitionNode>& nodes) {
  std::vector<std::vector<int>> out;
  for (const Partition& partition : convex_partitions(nodes)) out.push_back(partition.nodes);
  return out;
}

TEST(ConvexPartitions, AChainIsOne) {
  EXPECT_EQ(groups({{D, {}}, {D, {0}}, {D, {1}}}), (std::vector<std::vector<int>>{{0, 1, 2}}));
}

TEST(ConvexPartitions, ANodeThatIsNotTakenCuts) {
  EXPECT_EQ(groups({{D, {}}, {N, {0}}, {D, {1}}}), (std::vector<std::vector<int>>{{0}, {2}}));
}

// 0 feeds 3 directly and over 1, which is not taken: {0, 3} in one would need its own output.
TEST(ConvexPartitions, ADiamondOverTheCpuIsNotJoined) {
  EXPECT_EQ(groups({{D, {}}, {N, {0}}, {D, {0}}, {D, {1, 2}}}),
            (std::vector<std::vector<int>>{{0, 2}, {3}}));
}

TEST(ConvexPartitions, TheVendorsOwnCpuHasItsOwn) {
  const std::vector<PartitionNode> nodes = {{D, {}}, {H, {0}}, {D, {1}}};
  const auto partitions = convex_partitions(nodes);
  ASSERT_EQ(partitions.size(), 3U);
  EXPECT_EQ(std::count_if(partitions.begin(), partitions.end(),
                          [](const Partition& p) { return p.backend == Backend::kHost; }),
            1);
}

// On random graphs: every taken node is in one partition, and no path leaves one and comes back.
TEST(ConvexPartitions, RandomGraphsAreConvex) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<PartitionNode> nodes(40);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto kind = random() % 10;
      nodes[i].backend = kind < 6 ? D : kind < 8 ? N : H;
      for (int edges = static_cast<int>(random() % 3); i > 0 && edges > 0; --edges)
        nodes[i].predecessors.push_back(static_cast<int>(random() % i));
    }
    const auto partitions = convex_partitions(nodes);
    std::vector<int> of(nodes.size(), -1);
    for (std::size_t p = 0; p < partitions.size(); ++p)
      for (const int node : partitions[p].nodes) {
        EXPECT_EQ(of[static_cast<std::size_t>(node)], -1);
        of[static_cast<std::size_t>(node)] = static_cast<int>(p);
        EXPECT_EQ(nodes[static_cast<std::size_t>(node)].backend, partitions[p].backend);
      }
    for (std::size_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(of[i] == -1, nodes[i].backend == N);
    for (int p = 0; p < static_cast<int>(partitions.size()); ++p) {
      // Has a path from p to here left p on the way?
      std::vector<bool> inside(nodes.size()), left(nodes.size());
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        for (const int before : nodes[i].predecessors) {
          const auto at = static_cast<std::size_t>(before);
          if (of[i] == p) {
            EXPECT_FALSE(left[at]) << "partition " << p << " depends on itself at node " << i;
          }
          inside[i] = inside[i] || inside[at];
          left[i] = left[i] || left[at] || (inside[at] && of[i] != p);
        }
        if (of[i] == p) inside[i] = true;
      }
    }
  }
}

}  // namespace
}  // namespace tenonnx::simnpu
