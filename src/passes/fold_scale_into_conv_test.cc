// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The layouts of weights and groups: fold_batch_normalization_test.cc.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/tensor_proto.h"
#include "passes/fusion_test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Model graph(const std::string& body, const Shape& weight = {4, 4, 3, 3}) {
  onnx::ModelProto proto = proto_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,4,6,7] x) => (float[2,4,p,q] y) "
      "<float[1,4,1,1] s = {{1.5, -0.5, 2, 0.25}}, float[4,1,1] b = {{0.1, 0.2, -0.3, 0.4}}, "
      "float two = {{2}}, float zero = {{0}}, float one = {{1}}, float r = {{1.4142135}}, "
      "float half = {{0.5}}, float[1,1,1,4] row = {{1, 2, 3, 4}}, "
      "float[4] cb = {{1, -1, 0.5, 2}}> {{ {} }}",
      body));
  *proto.mutable_graph()->add_initializer() = to_tensor_proto(ramp(weight), "w");
  auto model = Model::from_proto(std::move(proto));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? std::move(*model) : Model();
}

TEST(FoldScaleIntoConv, ChainsBehindAndBefore) {
  for (const auto& [body, left] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           // Frozen normalisation of RT-DETR and DETR.
           {"c = Conv <pads = [1, 1, 1, 1]> (x, w) k = Mul (c, s) y = Add (k, b)", {"Conv"}},
           {"c = Conv (x, w, cb) k = Div (c, two) d = Sub (k, b) e = Sub (b, d) y = Mul (two, e)",
            {"Conv"}},
           // The learned affine of HGNetV2.
           {"a = Relu (x) k = Mul (two, a) d = Add (k, half) y = Conv (d, w)", {"Relu", "Conv"}},
           {"a = Relu (x) k = Mul (s, a) d = Add (k, zero) y = Conv <pads = [1, 1, 1, 1]> (d, w)",
            {"Relu", "Conv"}},
           {"a = Relu (x) d = Sub (b, a) c = Conv (d, w) k = Mul (c, s) y = Add (k, b)",
            {"Relu", "Conv"}},
           {"k = Mul (x, s) c = ConvTranspose <pads = [1, 1, 1, 1]> (k, w) y = Add (c, b)",
            {"ConvTranspose"}}}) {
    Model model = graph(body);
    const Model before = model.clone();
    const PassOutcome outcome = run_pass(model, "fold_scale_into_conv");
    EXPECT_EQ(outcome.applied, 1) << body << first_reason(outcome);
    ASSERT_EQ(op_types(model), left) << body;
    expect_within_noise(before, model, {{"x", ramp({2, 4, 6, 7})}});
  }
}

// The addend before a Conv that pads stays; the factor behind it goes in.
TEST(FoldScaleIntoConv, FoldsUpToWhatItCannot) {
  Model model = graph(
      "k = Mul (x, s) d = Add (k, half) m = Mul (d, two) "
      "y = Conv <pads = [1, 1, 1, 1]> (m, w)");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "fold_scale_into_conv");
  EXPECT_EQ(outcome.applied, 1);
  EXPECT_THAT(op_types(model), ElementsAre("Mul", "Add", "Conv"));
  EXPECT_THAT(first_reason(outcome), HasSubstr("the zeros of the padding do not have it"));
  expect_within_noise(before, model, {{"x", ramp({2, 4, 6, 7})}});
}

TEST(FoldScaleIntoConv, Refusals) {
  for (const auto& [body, reason] : std::vector<std::pair<std::string, std::string>>{
           {"c = Conv (x, w) k = Mul (c, s) y = Add (k, c)", "'c' is used elsewhere than by Mul"},
           {"c = Conv (x, w) k = Mul (c, s) d = Conv (k, w) y = Neg (d)",
            "its weight 'w' is used 2 times"},
           {"a = Abs (w) c = Conv (x, a) y = Mul (c, s)", "its weight 'a' is not a constant"},
           {"k = Mul (x, s) c = Conv <pads = [1, 1, 1, 1]> (k, w) y = Add (c, k)",
            "'k' is used elsewhere too"},
           // 0.5 x (1 + erf(x / sqrt(2))): devices fuse it whole.
           {"a = Div (x, r) e = Erf (a) o = Add (e, one) p = Mul (x, o) k = Mul (p, half) "
            "y = Conv (k, w)",
            "is the last factor of a GELU"}}) {
    Model model = graph(body);
    const PassOutcome outcome = run_pass(model, "fold_scale_into_conv");
    EXPECT_EQ(outcome.applied, 0) << body;
    EXPECT_THAT(first_reason(outcome), HasSubstr(reason)) << body;
  }
}

TEST(FoldScaleIntoConv, LeavesConstantsOfOtherShapes) {
  for (const std::string body :
       {"c = Conv <pads = [1, 1, 1, 1]> (x, w) k = Mul (x, c) y = Neg (k)",
        "c = Conv <strides = [3, 2], pads = [0, 1, 0, 1]> (x, w) y = Mul (c, row)"}) {
    Model model = graph(body);
    const PassOutcome outcome = run_pass(model, "fold_scale_into_conv");
    EXPECT_EQ(outcome.applied, 0) << body;
    EXPECT_THAT(outcome.skipped, IsEmpty()) << body;
  }
}

// A factor of a channel each may be what makes four channels of one.
TEST(FoldScaleIntoConv, LeavesAFactorThatMakesTheChannels) {
  onnx::ModelProto proto = proto_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,1,6,7] x) => (float[2,4,p,q] y) <float[4,1,1] s = {1.5, -0.5, 2, 0.25}> {
      a = Relu (x)  k = Mul (a, s)  y = Conv (k, w)
    })");
  *proto.mutable_graph()->add_initializer() = to_tensor_proto(ramp({4, 4, 3, 3}), "w");
  auto model = Model::from_proto(std::move(proto));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(run_pass(*model, "fold_scale_into_conv").applied, 0);
}

TEST(FoldScaleIntoConv, TheExampleHasNone) {
  Model model = folded_example();
  EXPECT_EQ(run_pass(model, "fold_scale_into_conv").applied, 0);
}

}  // namespace
}  // namespace tenonnx
