// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "passes/inference.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path kExample = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx";

// Nodes of the main graph that touch a tensor of more than `rank` dimensions.
int nodes_beyond(const Model& model, std::size_t rank) {
  const Inference inference = infer(model);
  const auto high = [&](const std::string& name) {
    const auto it = inference.graphs.front().find(name);
    return it != inference.graphs.front().end() && it->second.shape.size() > rank;
  };
  int count = 0;
  for (const auto& node : model.proto().graph().node())
    count += std::any_of(node.input().begin(), node.input().end(), high) ||
             std::any_of(node.output().begin(), node.output().end(), high);
  return count;
}

// Collapses, compares bit by bit on the CPU, returns the nodes that remain beyond max_rank.
int collapse(Model& model, const TensorMap& inputs, int max_rank = 4) {
  const TensorMap before = run_on_cpu(model, inputs);
  const PassOutcome outcome =
      run_pass(model, "collapse_rank", {{"max_rank", std::to_string(max_rank)}});
  for (const auto& refusal : outcome.skipped)
    ADD_FAILURE() << refusal.node << ": " << refusal.reason;
  EXPECT_GT(outcome.applied, 0);
  expect_identical(before, run_on_cpu(model, inputs));
  return nodes_beyond(model, static_cast<std::size_t>(max_rank));
}

TEST(CollapseRank, DeformableAttentionOfRank6) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[30,192] offsets, float[1,30,1,4] boxes) => (float[8,30,4,2] y, float[8,30,4,2] z)
    <int64[6] split = {1,30,8,3,4,2}, int64[4] join = {-1,30,4,2}, int64[1] two = {2},
     int64[1] four = {4}, int64[1] zero = {0}, int64[1] end = {9223372036854775807},
     int64[1] last = {5}, int64[1] one = {1}, float points = {4.0}, float half = {0.5},
     int64 first = {0}, int64 third = {2}> {
      o = Reshape (offsets, split)
      b5 = Unsqueeze (boxes, two)
      b = Unsqueeze (b5, four)
      wh = Slice (b, two, end, last, one)
      xy = Slice (b, zero, two, last, one)
      p = Div (o, points)
      q = Mul (p, wh)
      r = Mul (q, half)
      s = Add (xy, r)
      g0 = Gather <axis = 3> (s, first)
      g2 = Gather <axis = 3> (s, third)
      t0 = Transpose <perm = [0,2,1,3,4]> (g0)
      t2 = Transpose <perm = [0,2,1,3,4]> (g2)
      y = Reshape (t0, join)
      z = Reshape (t2, join)
    })");
  EXPECT_EQ(nodes_beyond(model, 4), 15);
  EXPECT_EQ(collapse(model, {{"offsets", ramp({30, 192})}, {"boxes", ramp({1, 30, 1, 4})}}), 0);
}

TEST(CollapseRank, OneFormServesAChainWhoseDimensionsOf1Go) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[10,96] x) => (float[4,10,12,2] y)
    <int64[5] split = {1,10,4,12,2}, int64[4] join = {4,10,12,2}, float[12,1] scale =
     {1,2,3,4,5,6,7,8,9,10,11,12}, float two = {2.0}, float one = {1.0}> {
      a = Reshape (x, split)  b = Mul (a, scale)  c = Mul (b, two)  d = Sub (c, one)
      e = Transpose <perm = [0,2,1,3,4]> (d)  y = Reshape (e, join)
    })");
  EXPECT_EQ(collapse(model, {{"x", ramp({10, 96})}}), 0);
  // No Reshape between the nodes, and none at the end: the Transpose gives y.
  EXPECT_THAT(op_types(model), ElementsAre("Reshape", "Mul", "Mul", "Sub", "Transpose"));
}

TEST(CollapseRank, OperandsThatBroadcastInTurnsAreExpanded) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[5,192] x, float[1,5,1,3,1,2] r) => (float[5,192] y)
    <int64[6] split = {1,5,8,3,4,2}, int64[2] join = {5,192}> {
      a = Reshape (x, split)  b = Add (a, r)  y = Reshape (b, join)
    })");
  // The input r keeps its rank, and so does the Reshape that takes it.
  EXPECT_EQ(collapse(model, {{"x", ramp({5, 192})}, {"r", ramp({1, 5, 1, 3, 1, 2})}}), 1);
  EXPECT_EQ(op_counts(model)["Expand"], 1);
}

TEST(CollapseRank, WindowPartitionOfRank6) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,12,12,5] x) => (float[18,16,5] y)
    <int64[6] split = {2,3,4,3,4,5}, int64[3] join = {-1,16,5}> {
      a = Reshape (x, split)  b = Transpose <perm = [0,1,3,2,4,5]> (a)  y = Reshape (b, join)
    })");
  EXPECT_EQ(collapse(model, {{"x", ramp({2, 12, 12, 5})}}), 0);
  EXPECT_THAT(op_types(model), ElementsAre("Reshape", "Transpose", "Reshape"));
}

TEST(CollapseRank, AReversalOfSixDimensionsTakesSteps) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[720] x) => (float[720] y)
    <int64[6] split = {2,3,4,5,2,3}, int64[1] join = {720}> {
      a = Reshape (x, split)  b = Transpose (a)  y = Reshape (b, join)
    })");
  EXPECT_EQ(collapse(model, {{"x", ramp({720})}}), 0);
  EXPECT_EQ(op_counts(model)["Transpose"], 5);
}

TEST(CollapseRank, AxesAreFoundInTheForms) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3,4,5,6] x) => (float[720] a, float[120] b, float[40] c, float[360] d, float[360] e,
                               float[1440] f, float[720] h, float[240] k, float[720] l, float[1440] m)
    <int64[1] flat = {-1}, int64[1] n4 = {-2}, int64[1] n1 = {-1}, int64[2] sums = {1,4},
     int64[1] n0 = {0}, int64[1] two = {2}, int64[1] five = {5}, int64[5] twice = {1,2,1,1,1},
     int64[2] pick = {3,1}, int64[1] three = {3}, float[6] gain = {1,2,3,4,5,6}, int64[2] parts = {1,2}> {
      s = Softmax <axis = 2> (x)           a = Reshape (s, flat)
      r = ReduceMax <axes = [-1]> (x)      b = Reshape (r, flat)
      u = ReduceSum <keepdims = 0> (x, sums)  c = Reshape (u, flat)
      v = Slice (x, n0, two, two)          d = Reshape (v, flat)
      w = Gather <axis = 2> (x, pick)      e = Reshape (w, flat)
      t = Tile (x, twice)                  f = Reshape (t, flat)
      o = LayerNormalization (x, gain)     h = Reshape (o, flat)
      p, q = Split <axis = 1> (x, parts)   k = Reshape (p, flat)
      z = Relu (x)                         l = Reshape (z, flat)
      j = Concat <axis = -3> (x, z)        m = Reshape (j, flat)
    })");
  // Every node takes the input, of rank 5, through one of these Reshapes: one for each form.
  EXPECT_EQ(collapse(model, {{"x", ramp({2, 3, 4, 5, 6})}}), 5);
}

TEST(CollapseRank, ExpandMasksAndThreeDimensions) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[6,20] x, bool[6,1] m) => (float[6,80] y)
    <int64[5] split = {2,3,1,4,5}, int64[5] mask = {2,3,1,1,1}, int64[5] wide = {2,3,4,4,5},
     int64[2] join = {6,80}, float zero = {0.0}> {
      a = Reshape (x, split)  b = Expand (a, wide)  n = Reshape (m, mask)
      c = Where (n, b, zero)  y = Reshape (c, join)
    })");
  const TensorMap inputs = {
      {"x", ramp({6, 20})},
      {"m", Tensor::from<std::uint8_t>(DType::kBool, {6, 1}, {1, 0, 0, 1, 1, 0})}};
  Model three = model.clone();
  EXPECT_EQ(collapse(model, inputs), 0);
  EXPECT_EQ(collapse(three, inputs, 3), 0);
}

TEST(CollapseRank, WhatMustKeepItsRankKeepsIt) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[24] x, bool c) => (float[1,2,3,2,2] y, float[24] z)
    <int64[5] split = {1,2,3,2,2}, float two = {2.0}, int64[1] flat = {-1}> {
      a = Reshape (x, split)  b = Mul (a, two)  d = Neg (b)  e = Abs (d)  y = Relu (e)
      z = If (c) < then_branch = t () => (float[24] p) { p = Reshape (b, flat) },
                   else_branch = f () => (float[24] q) { n = Neg (b)  q = Reshape (n, flat) }>
    })");
  const TensorMap inputs = {{"x", ramp({24})},
                            {"c", Tensor::from<std::uint8_t>(DType::kBool, {}, {1})}};
  EXPECT_EQ(collapse(model, inputs), 2);  // back to rank 5: b for the bodies, and y
}

TEST(CollapseRank, RefusesByNode) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2,4,4,4] x, float[2,2,1,1,1] w, float[N,2,2,2,2] n, float[24] v)
      => (float[1,2,4,4,4] y, float[N,2,2,2,2] z, float[12] u)
    <int64[5] split = {2,1,3,2,2}, float two = {2.0}, int64[1] flat = {-1}, int64[1] one = {1}> {
      y = Conv (x, w)  z = Relu (n)
      a = Reshape (v, split)  b = Mul (a, two)  c = ReduceSum <keepdims = 1> (b, one)
      d = ReduceL2 <axes = [1]> (c)  e, f = Split <axis = 0> (d)  u = Reshape (e, flat)
    })");
  const PassOutcome outcome = run_pass(model, "collapse_rank");
  ASSERT_EQ(outcome.skipped.size(), 4U);
  EXPECT_EQ(outcome.skipped[0].node, "Conv 'node_0'");
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("Conv is not among"));
  EXPECT_THAT(outcome.skipped[1].reason, HasSubstr("the shape of 'n' is not static"));
  EXPECT_THAT(outcome.skipped[2].reason, HasSubstr("dimensions of 1 alone"));
  EXPECT_THAT(outcome.skipped[3].reason, HasSubstr("dimensions of 1 alone"));
}

TEST(CollapseRank, NothingChangesWhereNothingWouldBeGained) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2,4,4,4] x) => (float[1,2,4,4,4] y) { y = Relu (x) })");
  const PassOutcome outcome = run_pass(model, "collapse_rank");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("nothing is changed"));
  EXPECT_THAT(op_types(model), ElementsAre("Relu"));
}

TEST(CollapseRank, ChecksItsOption) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y) { y = Relu (x) })");
  const std::vector<std::string> names = {"collapse_rank"};
  EXPECT_THAT(run_passes(model, names, {{"collapse_rank.max_rank", "2"}}).status().message(),
              AllOf(HasSubstr("max_rank is 2"), HasSubstr("3 to 7")));
}

TEST(CollapseRank, TheExampleHasNothingBeyondRank4Then) {
  auto loaded = Model::load(kExample);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  Model model = std::move(loaded).value();
  run_pass(model, "fold_constants");
  EXPECT_EQ(nodes_beyond(model, 4), 48);
  TensorMap inputs;
  for (const TensorInfo& info : model.inputs())
    inputs[info.name] = info.dtype == DType::kFloat32
                            ? ramp(info.shape)
                            : Tensor::from<std::int64_t>(DType::kInt64, info.shape, {256, 256});
  EXPECT_EQ(collapse(model, inputs), 0);
}

}  // namespace
}  // namespace tenonnx
