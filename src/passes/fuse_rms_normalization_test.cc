// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The forms that it shares with LayerNormalization: fuse_layer_normalization_test.cc.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/fusion_test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Model graph(const std::string& body, int opset = 23) {
  return model_from_text(
      fmt::format("<ir_version: 10, opset_import: [\"\" : {}]> "
                  "g (float[2,3,4] x) => (float[2,3,4] y) "
                  "<float two = {{2}}, float one = {{1}}, float eps = {{0.001}}, "
                  "int64[1] last = {{-1}}, int64[1] mid = {{1}}, float[4] s = {{1, -2, 0.5, 3}}, "
                  "float[4] b = {{1, 2, 3, 4}}> {{ {} }}",
                  opset, body));
}

// As DEIMv2 exports it, with the casts of mixed precision that do nothing here.
const char* const kOfDeim =
    "c = Cast <to = 1> (x) q = Pow (c, two) v = ReduceMean (q, last) e = Add (v, eps) r = Sqrt (e) "
    "i = Div (one, r) n = Mul (c, i) t = Cast <to = 1> (n) y = Mul (s, t)";

TEST(FuseRmsNormalization, Forms) {
  for (const std::string body :
       {kOfDeim,
        "q = Mul (x, x) v = ReduceMean (q, last) e = Add (v, eps) r = Sqrt (e) n = Div (x, r) "
        "y = Mul (n, s)",
        "q = Mul (x, x) v = ReduceMean (q, last) e = Add (v, eps) r = Sqrt (e) i = Reciprocal (r) "
        "y = Mul (x, i)"}) {
    Model model = graph(body);
    const Model before = model.clone();
    const PassOutcome outcome = run_pass(model, "fuse_rms_normalization");
    EXPECT_EQ(outcome.applied, 1) << body << first_reason(outcome);
    ASSERT_THAT(op_types(model), ElementsAre("RMSNormalization")) << body;
    const onnx::NodeProto& node = model.proto().graph().node(0);
    EXPECT_EQ(node.input(0), "x");
    EXPECT_EQ(attribute_or(node, "epsilon", 0.0F), 0.001F);
    expect_within_noise(before, model, {{"x", ramp({2, 3, 4})}});
  }
}

TEST(FuseRmsNormalization, AnAddendStaysBehindTheOperator) {
  Model model = graph(
      "q = Mul (x, x) v = ReduceMean (q, last) e = Add (v, eps) r = Sqrt (e) n = Div (x, r) "
      "k = Mul (n, s) y = Add (k, b)");
  EXPECT_EQ(run_pass(model, "fuse_rms_normalization").applied, 1);
  EXPECT_THAT(op_types(model), ElementsAre("RMSNormalization", "Add"));
}

TEST(FuseRmsNormalization, RefusesWhatIsNearlyOne) {
  for (const auto& [body, reason] : std::vector<std::pair<std::string, std::string>>{
           {"q = Mul (x, x) v = ReduceMean (q, mid) e = Add (v, eps) r = Sqrt (e) y = Div (x, r)",
            "over the axes [-2] from the end"},
           {"q = Mul (x, x) v = ReduceMean (q, last) r = Sqrt (v) e = Add (r, eps) y = Div (x, e)",
            "epsilon is added behind the root"},
           {"z = Neg (x) q = Mul (x, x) v = ReduceMean (q, last) e = Add (v, eps) r = Sqrt (e) "
            "y = Div (z, r)",
            "divides another tensor than the one whose mean square"},
           {"q = Mul (x, x) v = ReduceMean (q, last) e = Add (v, eps) r = Sqrt (e) n = Div (x, r) "
            "y = Mul (n, e)",
            "'e' is used by Mul"}}) {
    Model model = graph(body);
    const PassOutcome outcome = run_pass(model, "fuse_rms_normalization");
    EXPECT_EQ(outcome.applied, 0) << body;
    EXPECT_THAT(first_reason(outcome), HasSubstr(reason)) << body;
  }
}

// In a square, the roots of the rows divide the columns without any error of shapes.
TEST(FuseRmsNormalization, RefusesAMeanThatDropsItsAxis) {
  Model model = model_from_text(R"(<ir_version: 10, opset_import: ["" : 23]>
    g (float[4,4] x) => (float[4,4] y) <float eps = {0.001}, int64[1] last = {-1}> {
      q = Mul (x, x)  v = ReduceMean <keepdims = 0> (q, last)  e = Add (v, eps)  r = Sqrt (e)
      y = Div (x, r)
    })");
  const PassOutcome outcome = run_pass(model, "fuse_rms_normalization");
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_THAT(first_reason(outcome), HasSubstr("keepdims 0"));
}

TEST(FuseRmsNormalization, LeavesLayerNormalization) {
  Model model = graph(
      "m = ReduceMean (x, last) d = Sub (x, m) q = Mul (d, d) v = ReduceMean (q, last) "
      "e = Add (v, eps) r = Sqrt (e) y = Div (d, r)");
  const PassOutcome outcome = run_pass(model, "fuse_rms_normalization");
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_THAT(outcome.skipped, IsEmpty());
}

TEST(FuseRmsNormalization, RefusesAnOlderOpset) {
  Model model = graph(kOfDeim, 22);
  EXPECT_THAT(first_reason(run_pass(model, "fuse_rms_normalization")),
              AllOf(HasSubstr("RMSNormalization came with opset 23"), HasSubstr("imports 22"),
                    HasSubstr("convert_opset")));
}

TEST(FuseRmsNormalization, FindsAllOfTheExample) {
  Model model = folded_example();
  const PassOutcome outcome = run_pass(model, "fuse_rms_normalization");
  EXPECT_THAT(outcome.skipped, SizeIs(12));  // its Sqrt nodes: three a decoder layer
  EXPECT_THAT(outcome.skipped, Each(Field(&Refusal::reason, HasSubstr("convert_opset"))));
}

// All fusions together, where the opset has their operators, and all of them back.
TEST(FuseRmsNormalization, TheExampleComputesTheSameAtOpset24) {
  Model model = folded_example();
  run_pass(model, "convert_opset", {{"target", "24"}});
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "fuse_rms_normalization").applied, 12);
  EXPECT_EQ(run_pass(model, "fuse_gelu").applied, 1);
  EXPECT_EQ(run_pass(model, "fuse_silu").applied, 36);
  expect_same_scores(before, model);
  const Model fused = model.clone();
  EXPECT_EQ(run_pass(model, "decompose_rms_normalization").applied, 12);
  EXPECT_EQ(run_pass(model, "decompose_gelu").applied, 1);
  EXPECT_EQ(run_pass(model, "decompose_silu").applied, 36);
  EXPECT_EQ(run_pass(model, "decompose_layer_normalization").applied, 3);
  expect_same_scores(fused, model);
  for (const char* op : {"RMSNormalization", "LayerNormalization", "Gelu", "Swish"})
    EXPECT_EQ(op_counts(model)[op], 0) << op;
}

}  // namespace
}  // namespace tenonnx
