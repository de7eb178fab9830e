// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/region_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Model model_of(const std::string& nodes, int opset = 17, const std::string& more = "") {
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : {}]> g (float[2,8] x) => (float[2,8] y) {} {{ {} }}",
      opset, more, nodes));
}

GraphDiff diff(const Model& before, const Model& after,
               const std::map<std::string, std::string>& renamed = {}) {
  auto result = diff_graphs(before, after, renamed, "test_pass");
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? std::move(result).value() : GraphDiff();
}

std::vector<std::string> names(const std::vector<RegionTensor>& tensors) {
  std::vector<std::string> out;
  for (const RegionTensor& tensor : tensors)
    out.push_back(tensor.before == tensor.after ? tensor.before
                                                : tensor.before + ">" + tensor.after);
  return out;
}

TEST(RegionDiff, TheSameGraphHasNone) {
  const Model model = model_of("a = Neg (x) y = Relu (a)");
  const GraphDiff d = diff(model, model.clone());
  EXPECT_TRUE(d.regions.empty());
  EXPECT_EQ(d.unchanged, 2);
}

TEST(RegionDiff, ARegionHasItsBoundary) {
  const GraphDiff d = diff(model_of("a = Neg (x) b = Identity (a) c = Relu (b) y = Abs (c)"),
                           model_of("a = Neg (x) c = Relu (a) y = Abs (c)"));
  ASSERT_EQ(d.regions.size(), 1U);
  EXPECT_THAT(d.regions[0].before, ElementsAre(1, 2));
  EXPECT_THAT(d.regions[0].after, ElementsAre(1));
  EXPECT_THAT(names(d.regions[0].inputs), ElementsAre("a"));
  EXPECT_THAT(names(d.regions[0].outputs), ElementsAre("c"));
  EXPECT_THAT(d.counterpart, ElementsAre(0, -1, -1, 2));
}

TEST(RegionDiff, CommonTensorsPartRegions) {
  const GraphDiff d = diff(model_of("a = Identity (x) b = Relu (a) c = Identity (b) y = Relu (c)"),
                           model_of("b = Relu (x) y = Relu (b)"));
  ASSERT_EQ(d.regions.size(), 2U);
  EXPECT_THAT(names(d.regions[0].outputs), ElementsAre("b"));
  EXPECT_THAT(names(d.regions[1].inputs), ElementsAre("b"));
}

TEST(RegionDiff, ATensorThatTookTheNameOfAnOutput) {
  const GraphDiff d =
      diff(model_of("a = Relu (x) y = Identity (a)"), model_of("y = Relu (x)"), {{"a", "y"}});
  ASSERT_EQ(d.regions.size(), 1U);
  EXPECT_EQ(d.unchanged, 1);  // the Relu
  EXPECT_THAT(names(d.regions[0].inputs), ElementsAre("a>y"));
  EXPECT_THAT(names(d.regions[0].outputs), ElementsAre("y"));
  EXPECT_TRUE(d.regions[0].after.empty());
}

TEST(RegionDiff, SeesAttributesSchemasAndConstants) {
  const Model before = model_of("y = LeakyRelu <alpha = 0.1> (x)");
  EXPECT_EQ(diff(before, model_of("y = LeakyRelu <alpha = 0.2> (x)")).regions.size(), 1U);
  // The schema of Relu is the same in 16 and 17, that of Cast is not in 17 and 19.
  const std::string nodes = "a = Cast <to = 1> (x) y = Relu (a)";
  EXPECT_EQ(diff(model_of(nodes, 16), model_of(nodes, 17)).unchanged, 2);
  EXPECT_EQ(diff(model_of(nodes, 17), model_of(nodes, 19)).unchanged, 1);
  const GraphDiff d = diff(model_of("y = Mul (x, k)", 17, "<float k = {2}>"),
                           model_of("y = Mul (x, k)", 17, "<float k = {3}>"));
  EXPECT_EQ(d.regions.size(), 1U);
  EXPECT_TRUE(diff(model_of("y = Mul (x, k)", 17, "<float k = {2}>"),
                   model_of("y = Mul (x, k)", 17, "<float k = {2}>"))
                  .regions.empty());
}

TEST(RegionDiff, AConstantThatANodeMade) {
  const GraphDiff d =
      diff(model_of("k = Constant <value = float {2}> () m = Neg (k) y = Mul (x, m)"),
           model_of("y = Mul (x, m)", 17, "<float m = {-2}>"));
  ASSERT_EQ(d.regions.size(), 1U);
  EXPECT_TRUE(d.regions[0].inputs.empty());
  EXPECT_THAT(names(d.regions[0].outputs), ElementsAre("m"));
}

TEST(RegionDiff, DeadNodesAreNoRegion) {
  EXPECT_TRUE(diff(model_of("a = Neg (x) b = Abs (a) y = Relu (x)"), model_of("y = Relu (x)"))
                  .regions.empty());
}

TEST(RegionDiff, RefusesWhatNoPassMayDo) {
  const Model before = model_of("a = Relu (x) y = Neg (a)");
  const auto refused = [&](const Model& after, std::map<std::string, std::string> renamed = {}) {
    const Status status = diff_graphs(before, after, renamed, "test_pass").status();
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    return status.message();
  };
  const Model other = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,8] x) => (float[2,8] z) { z = Neg (x) })");
  EXPECT_THAT(refused(other), HasSubstr("took the output 'y' of the graph away"));
  const Model retyped = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,8] x) => (double[2,8] y) { y = Cast <to = 11> (x) })");
  EXPECT_THAT(refused(retyped), HasSubstr("made the output 'y' of the graph float64"));
  EXPECT_THAT(refused(before, {{"q", "a"}}), HasSubstr("the graph before it has no 'q'"));
  EXPECT_THAT(refused(before, {{"a", "q"}}), HasSubstr("the graph after it has no 'q'"));
  const Status constant =
      diff_graphs(model_of("y = Mul (x, k)", 17, "<float k = {2}>"),
                  model_of("y = Mul (x, m)", 17, "<float m = {3}>"), {{"k", "m"}}, "test_pass")
          .status();
  EXPECT_THAT(constant.message(), HasSubstr("the constant 'k' is now 'm', but the values differ"));
}

TEST(GrowRegion, TakesWhatMakesTheInputs) {
  const Model before = model_of("a = Neg (x) b = Abs (a) c = Identity (b) y = Relu (c)");
  const Model after = model_of("a = Neg (x) b = Abs (a) y = Relu (b)");
  const GraphDiff d = diff(before, after);
  ASSERT_EQ(d.regions.size(), 1U);
  ChangedRegion region = d.regions[0];
  ASSERT_TRUE(grow_region(before, after, d, {}, region));
  EXPECT_THAT(names(region.inputs), ElementsAre("a"));
  EXPECT_THAT(names(region.outputs), ElementsAre("y"));
  ASSERT_TRUE(grow_region(before, after, d, {}, region));
  EXPECT_THAT(names(region.inputs), ElementsAre("x"));
  EXPECT_FALSE(grow_region(before, after, d, {}, region));
}

}  // namespace
}  // namespace tenonnx
