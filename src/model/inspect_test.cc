// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <limits>

#include "model/parse_for_test.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;

TEST(Inspect, SmallModel) {
  onnx::ModelProto proto = parse_proto(R"(
    <ir_version: 10, opset_import: ["" : 20, "com.acme" : 2], producer_name: "p",
     producer_version: "1.2">
    g (float[batch,3,8,8] x, float[batch,4,4,2] grid, bool c) => (float[batch,3] y, int64[1,2] i)
    <float[4] w = {0, 0, 0, 0}, int64[1] k = {2}, int64[2] target = {1, 48}> {
      [gs] s = GridSample <align_corners = 1, padding_mode = "border"> (x, grid)
      [bake] r = Reshape (s, target)
      [top] v, i = TopK (r, k)
      [custom] a = com.acme.Warp (r)
      [branch] y = If (c) <then_branch = t () => (float[batch,3] p) { p = Relu (a) },
                           else_branch = e () => (float[batch,3] q) { q = Relu (a) }>
      z = Constant <value_float = 100000.0> ()
    })");
  constexpr float kInf = std::numeric_limits<float>::infinity();
  *proto.mutable_graph()->mutable_initializer(0) = to_tensor_proto(
      Tensor::from<float>(DType::kFloat32, {5}, {70000, -2, 1e-6F, kInf, std::nanf("")}), "w");
  const auto model = Model::from_proto(proto);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto report = inspect(*model);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->nodes, 6);
  EXPECT_EQ(report->subgraphs, 2);
  EXPECT_EQ(report->op_counts.at("Relu"), 2);
  EXPECT_EQ(report->op_counts.at("com.acme.Warp"), 1);
  EXPECT_THAT(report->custom_domains, ElementsAre("com.acme"));
  EXPECT_EQ(report->opsets.at("ai.onnx"), 20);
  EXPECT_EQ(report->producer, "p 1.2");
  EXPECT_THAT(report->dynamic_dims, ElementsAre("x[0] (batch)", "grid[0] (batch)"));
  EXPECT_EQ(report->parameters, 5 + 1 + 2);
  EXPECT_EQ(report->initializer_bytes, 5u * 4 + 8 + 16);
  EXPECT_FALSE(report->has_metadata);

  ASSERT_EQ(report->grid_samples.size(), 1u);
  const GridSampleSite& site = report->grid_samples[0];
  EXPECT_EQ(site.node, "gs");
  EXPECT_EQ(site.mode, "linear");
  EXPECT_EQ(site.padding_mode, "border");
  EXPECT_TRUE(site.align_corners);
  EXPECT_EQ(site.grid.shape, (Shape{-1, 4, 4, 2}));
  EXPECT_EQ(site.output.shape, (Shape{-1, 3, 4, 4}));
  ASSERT_EQ(report->selections.size(), 1u);
  EXPECT_EQ(report->selections[0].node, "top");
  EXPECT_EQ(report->selections[0].k, "2");
  ASSERT_EQ(report->baked_shapes.size(), 1u);
  EXPECT_EQ(report->baked_shapes[0].node, "bake");
  EXPECT_EQ(report->baked_shapes[0].target, "[1,48]");

  ASSERT_EQ(report->beyond_float16.size(), 2u);
  EXPECT_EQ(report->beyond_float16[0].name, "w");
  EXPECT_EQ(report->beyond_float16[0].count, 1);
  EXPECT_EQ(report->beyond_float16[0].min, -2);
  EXPECT_EQ(report->beyond_float16[0].max, 70000);
  EXPECT_EQ(report->beyond_float16[1].name, "z");
  ASSERT_EQ(report->subnormal_float16.size(), 1u);
  EXPECT_EQ(report->subnormal_float16[0].count, 1);
  ASSERT_EQ(report->infinite.size(), 1u);
  ASSERT_EQ(report->nan.size(), 1u);
}

TEST(Inspect, TheExample) {
  const auto model = Model::load(std::filesystem::path(TENONNX_TEST_SOURCE_DIR) /
                                 "examples/models/shapes_deimv2.onnx");
  const auto report = inspect(*model);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->nodes, 3548);
  EXPECT_FALSE(report->grid_samples.empty());
  EXPECT_FALSE(report->selections.empty());
  for (const GridSampleSite& site : report->grid_samples) EXPECT_EQ(site.grid.shape.size(), 4u);
  EXPECT_TRUE(report->custom_domains.empty());
  EXPECT_GT(report->parameters, 100000);
}

}  // namespace
}  // namespace tenonnx
