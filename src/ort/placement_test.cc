// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/placement.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenonnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string run_event(int ts, int dur) {
  return fmt::format(R"({{"cat" : "Session","pid" :1,"tid" :1,"dur" :{},"ts" :{},"ph" : "X",)"
                     R"("name" :"model_run","args" : {{}}}},)",
                     dur, ts) +
         "\n";
}

std::string node_event(const char* name, const char* op, const char* provider, int ts, int dur) {
  return fmt::format(
             R"({{"cat" : "Node","pid" :1,"tid" :1,"dur" :{},"ts" :{},"ph" : "X",)"
             R"("name" :"{}_kernel_time","args" : {{"provider" : "{}","op_name" : "{}"}}}},)",
             dur, ts, name, provider, op) +
         "\n";
}

constexpr const char* kCpu = "CPUExecutionProvider";
constexpr const char* kNpu = "NpuExecutionProvider";

TEST(PlacementTest, AgreesAndTimesTheLastRun) {
  const std::string profile = "[\n" + node_event("a", "Conv", kNpu, 10, 5) +
                              node_event("b", "Add", kCpu, 20, 7) + run_event(5, 40) +
                              node_event("a", "Conv", kNpu, 110, 3) +
                              node_event("b", "Add", kCpu, 120, 2) +
                              node_event("b", "Add", kCpu, 130, 2) + run_event(100, 50) + "]\n";
  const Placement placement =
      placement_from_profile(profile, {{kNpu, "a", "Conv"}, {kCpu, "b", "Add"}});
  EXPECT_EQ(placement.disagreement, "");
  ASSERT_EQ(placement.nodes.size(), 2u);
  EXPECT_EQ(placement.nodes[0].node, "a");
  EXPECT_EQ(placement.nodes[0].op_type, "Conv");
  EXPECT_EQ(placement.nodes[0].provider, kNpu);
  EXPECT_EQ(placement.nodes[0].duration_us, 3);
  EXPECT_EQ(placement.nodes[1].duration_us, 4);  // a loop's body: twice in the last run
}

TEST(PlacementTest, CountsNodesPerProviderMostFirst) {
  const std::string profile = node_event("a", "Conv", kNpu, 1, 1) +
                              node_event("b", "Add", kCpu, 2, 1) +
                              node_event("c", "Add", kCpu, 3, 1) + run_event(0, 9);
  const Placement placement = placement_from_profile(
      profile, {{kNpu, "a", "Conv"}, {kCpu, "b", "Add"}, {kCpu, "c", "Add"}});
  EXPECT_THAT(placement.providers, ElementsAre(Pair(kCpu, 2), Pair(kNpu, 1)));
  EXPECT_THAT(placement.disagreement, IsEmpty());
}

TEST(PlacementTest, NodeThatRanElsewhere) {
  const std::string profile = node_event("a", "Conv", kCpu, 1, 1) +
                              node_event("b", "Conv", kNpu, 2, 1) +
                              node_event("c", "Conv", kCpu, 3, 1) + run_event(0, 9);
  const Placement placement = placement_from_profile(
      profile, {{kNpu, "a", "Conv"}, {kNpu, "b", "Conv"}, {kCpu, "c", "Conv"}});
  EXPECT_EQ(placement.disagreement,
            "'a' was assigned to NpuExecutionProvider and ran on CPUExecutionProvider");
}

TEST(PlacementTest, ProviderThatRanNothing) {
  // All nodes on the CPU under other names: the silent fallback that a list of registered providers
  // hides.
  const std::string profile = node_event("fused_a", "FusedConv", kCpu, 1, 1) + run_event(0, 9);
  const Placement placement = placement_from_profile(profile, {{kNpu, "a", "Conv"}});
  EXPECT_THAT(placement.disagreement,
              HasSubstr("NpuExecutionProvider was assigned 1 nodes and ran none"));
  EXPECT_THAT(placement.disagreement,
              HasSubstr("CPUExecutionProvider ran 1 nodes and was assigned none"));
}

TEST(PlacementTest, FusionsAreNoDisagreement) {
  const std::string profile = node_event("fused_ab", "FusedConv", kCpu, 1, 1) + run_event(0, 9);
  const Placement placement =
      placement_from_profile(profile, {{kCpu, "a", "Conv"}, {kCpu, "b", "Relu"}});
  EXPECT_EQ(placement.disagreement, "");
}

TEST(PlacementTest, NothingIsSilentlyMissing) {
  EXPECT_THAT(placement_from_profile("[\n]\n", {{kCpu, "a", "Conv"}}).disagreement,
              HasSubstr("the profile holds no run"));
  const std::string run = node_event("a", "Conv", kCpu, 1, 1) + run_event(0, 9);
  EXPECT_THAT(placement_from_profile(run, {}).disagreement, HasSubstr("no assignment record"));
  // A node name with a quote, which ONNX Runtime writes as it is; and a file cut off.
  const std::string broken = node_event("a\"b", "Conv", kCpu, 2, 1) + run + run.substr(0, 30);
  const Placement placement = placement_from_profile(broken, {{kCpu, "a", "Conv"}});
  EXPECT_THAT(placement.disagreement, HasSubstr("2 events of the profile cannot be read"));
  EXPECT_EQ(placement.nodes.size(), 1u);
}

}  // namespace
}  // namespace tenonnx
