// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "passes/inference.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path kExample = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx";

int type_of(const Model& model, const std::string& name) {
  const auto types = infer(model).graphs.front();
  const auto it = types.find(name);
  return it == types.end() ? 0 : it->second.onnx_type;
}

std::string reason_at(const PassOutcome& outcome, const std::string& node) {
  for (const auto& refusal : outcome.skipped)
    if (refusal.node.find(node) != std::string::npos) return refusal.reason;
  return "no refusal";
}

TEST(NarrowIndexTypes, TheSelectionOfADetector) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,800] scores, float[1,10,4] boxes) => (int64[1,5] labels, float[1,5,4] picked,
                                                    float[1,5] top)
    <int64[1] k = {5}, int64 classes = {80}, int64[1] last = {-1}, int64[3] four = {1,1,4}> {
      top, i = TopK (scores, k)
      q = Div (i, classes)  p = Mul (q, classes)  labels = Sub (i, p)
      u = Unsqueeze (q, last)  t = Tile (u, four)  picked = GatherElements <axis = 1> (boxes, t)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "narrow_index_types");
  EXPECT_EQ(outcome.applied, 6);
  EXPECT_THAT(op_types(model), ElementsAre("TopK", "Cast", "Div", "Mul", "Sub", "Cast", "Unsqueeze",
                                           "Tile", "GatherElements"));
  EXPECT_EQ(type_of(model, "labels"), onnx::TensorProto::INT64);
  EXPECT_EQ(type_of(model, model.proto().graph().node(8).input(1)), onnx::TensorProto::INT32);
  EXPECT_THAT(reason_at(outcome, "TopK"), HasSubstr("TopK takes int64 alone"));
  const TensorMap inputs = {{"scores", ramp({1, 800})}, {"boxes", ramp({1, 10, 4})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(NarrowIndexTypes, ConstantIndicesAndBoundsOfSlice) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,6] x) => (float[2,6] a, float[4,4] b)
    <int64[2] rows = {3,-1}, int64[1] s = {2}, int64[1] e = {9223372036854775807}, int64[1] d = {1}> {
      a = Gather (x, rows)  b = Slice (x, s, e, d)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "narrow_index_types").applied, 2);
  for (const auto& t : model.proto().graph().initializer())
    EXPECT_EQ(t.data_type(), onnx::TensorProto::INT32) << t.name();
  const TensorMap inputs = {{"x", ramp({4, 6})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(NarrowIndexTypes, PixelNumbersOfASampleByGathers) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[9] x, float[40] image) => (float[9] a, float[9] b, bool[9] inside, float[9] dx)
    <int64 low = {0}, int64 high = {39}, int64 end = {40}, int64 one = {1}> {
      f = Floor (x)  i = Cast <to = 7> (f)  j = Add (i, one)
      p = Clip (i, low, high)  q = Clip (j, low, high)
      a = Gather (image, p)  b = Gather (image, q)
      s = GreaterOrEqual (i, low)  t = Less (j, end)  inside = And (s, t)
      g = Cast <to = 1> (i)  dx = Sub (x, g)
    })");
  const Model before = model.clone();
  EXPECT_TRUE(run_pass(model, "narrow_index_types").skipped.empty());
  EXPECT_THAT(op_types(model),
              ElementsAre("Floor", "Clip", "Cast", "Add", "Clip", "Clip", "Gather", "Gather",
                          "GreaterOrEqual", "Less", "And", "Add", "Sub"));
  // Inside, outside, -0, and beyond 2^30. (Beyond 2^31 it is ONNX Runtime 1.29 whose int64 kernels
  // drop the upper half: of 3e9 it makes 0, not 39.)
  const TensorMap inputs = {
      {"x", Tensor::from<float>(DType::kFloat32, {9},
                                {-0.5F, 3.7F, 38.9F, 39.0F, 40.0F, -1.0F, -0.0F, 2e9F, -2e9F})},
      {"image", ramp({40})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(NarrowIndexTypes, AClipThatWouldShowIsNotMade) {
  // The number itself, as a float; a bound beyond 2^29; a product.
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] a, bool[2] b, int64[2] c)
    <int64 far = {1000000000}, int64 low = {0}, int64 high = {39}, int64 two = {2}> {
      i = Cast <to = 7> (x)  p = Clip (i, low, high)  q = Cast <to = 1> (p)
      f = Cast <to = 1> (i)  a = Add (q, f)
      j = Cast <to = 7> (a)  b = Less (j, far)
      k = Cast <to = 7> (a)  m = Mul (k, two)  c = Clip (m, low, high)
    })");
  EXPECT_EQ(run_pass(model, "narrow_index_types").applied, 0);
  EXPECT_EQ(op_counts(model)["Cast"], 5);
}

TEST(NarrowIndexTypes, RefusesWhatIsNotProvedOrTakesInt64Alone) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[8] x, int64[2] i, float[2] f) => (float[2] a, float[2] b, float[2] c, int64[2] d,
                                               float[2] e)
    <int64[1] k = {2}, int64[1] one = {1}, int64 far = {4294967296}> {
      a = Gather (x, i)
      t = Cast <to = 7> (f)
      b = Gather (x, t)
      v, j = TopK (x, k)
      u = Unsqueeze (j, one)
      c = GatherND (x, u)
      d = Add (j, far)
      e = Cast <to = 1> (j)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "narrow_index_types");
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_EQ(model.serialize().value(), before.serialize().value());
  EXPECT_THAT(reason_at(outcome, "node_0"), HasSubstr("'i' has no proved bounds"));
  EXPECT_THAT(reason_at(outcome, "node_1"), HasSubstr("'t' has no proved bounds"));
  EXPECT_THAT(reason_at(outcome, "node_2"), HasSubstr("'t' has no proved bounds"));
  EXPECT_THAT(reason_at(outcome, "node_4"), HasSubstr("nothing takes its copy as int32"));
  EXPECT_THAT(reason_at(outcome, "node_5"), HasSubstr("GatherND takes int64 alone"));
  EXPECT_THAT(reason_at(outcome, "node_6"), HasSubstr("no proved bounds within int32"));
  EXPECT_THAT(reason_at(outcome, "node_7"), HasSubstr("converts what is int64 otherwise"));
}

TEST(NarrowIndexTypes, WhatABodyTakesStaysInt64) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[8] x, bool c) => (float[2] y, int64[2] z)
    <int64[1] k = {2}, int64 two = {2}> {
      v, j = TopK (x, k)  h = Div (j, two)  y = Gather (x, h)
      z = If (c) < then_branch = t () => (int64[2] p) { p = Identity (h) },
                   else_branch = f () => (int64[2] q) { q = Add (h, h) }>
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "narrow_index_types").applied, 2);
  EXPECT_EQ(type_of(model, "h"), onnx::TensorProto::INT64);
  const TensorMap inputs = {{"x", ramp({8})},
                            {"c", Tensor::from<std::uint8_t>(DType::kBool, {}, {1})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(NarrowIndexTypes, TheExampleIsTheSame) {
  auto loaded = Model::load(kExample);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  Model model = std::move(loaded).value();
  run_pass(model, "fold_constants");
  TensorMap inputs;
  for (const TensorInfo& info : model.inputs())
    inputs[info.name] = info.dtype == DType::kFloat32
                            ? ramp(info.shape)
                            : Tensor::from<std::int64_t>(DType::kInt64, info.shape, {256, 256});
  const TensorMap before = run_on_cpu(model, inputs);
  EXPECT_GT(run_pass(model, "narrow_index_types").applied, 0);
  expect_identical(before, run_on_cpu(model, inputs));
  // All that indexes does so with int32.
  for (const auto& node : model.proto().graph().node()) {
    if (node.op_type() == "Gather" || node.op_type() == "GatherElements") {
      EXPECT_EQ(type_of(model, node.input(1)), onnx::TensorProto::INT32) << node_label(node);
    }
  }
}

}  // namespace
}  // namespace tenonnx
