// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/half.h"
#include "model/tensor_proto.h"
#include "passes/fusion_test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Parameters of a normalisation of 4 channels; the epsilon of the tests, 0.01, matters beside 0.05.
constexpr const char* kParameters =
    "float[4] s = {1.5, -0.5, 2, 0.25}, float[4] b = {0.1, 0.2, -0.3, 0.4}, "
    "float[4] m = {0.5, -0.25, 0.125, 1}, float[4] v = {0.05, 1, 2, 0.5}, "
    "float[4] zero = {0, 0, 0, 0}";

struct Case {
  const char* name;
  const char* op;
  const char* attributes;
  Shape weight;
  bool bias;
};
class FoldBatchNormalizationBehind : public testing::TestWithParam<Case> {};

Model behind(const Case& c) {
  const std::string bias = c.bias ? ", cb" : "";
  onnx::ModelProto proto = proto_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,4,6,7] x) => (float[2,4,p,q] y) "
      "<{}, float[4] cb = {{1, -1, 0.5, 2}}> {{ c = {} {} (x, w{}) "
      "y = BatchNormalization <epsilon = 0.01> (c, s, b, m, v) }}",
      kParameters, c.op, c.attributes, bias));
  *proto.mutable_graph()->add_initializer() = to_tensor_proto(ramp(c.weight), "w");
  auto model = Model::from_proto(std::move(proto));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(model).value();
}

TEST_P(FoldBatchNormalizationBehind, OneNodeRemains) {
  const Case& c = GetParam();
  Model model = behind(c);
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "fold_batch_normalization");
  EXPECT_EQ(outcome.applied, 1) << first_reason(outcome);
  ASSERT_THAT(op_types(model), ElementsAre(c.op));
  EXPECT_EQ(model.proto().graph().node(0).output(0), "y");
  EXPECT_EQ(model.proto().graph().node(0).name(), before.proto().graph().node(0).name());
  EXPECT_EQ(model.proto().graph().initializer_size(), 2);
  expect_within_noise(before, model, {{"x", ramp({2, 4, 6, 7})}});
}

INSTANTIATE_TEST_SUITE_P(
    Convolutions, FoldBatchNormalizationBehind,
    testing::Values(
        Case{"plain", "Conv", "<pads = [1, 1, 1, 1]>", {4, 4, 3, 3}, true},
        Case{"no_bias", "Conv", "<strides = [2, 2]>", {4, 4, 3, 3}, false},
        Case{"groups", "Conv", "<group = 2>", {4, 2, 3, 3}, true},
        Case{"depthwise", "Conv", "<group = 4, pads = [1, 1, 1, 1]>", {4, 1, 3, 3}, false},
        Case{"transposed", "ConvTranspose", "<strides = [2, 2]>", {4, 4, 2, 2}, true},
        Case{"transposed_groups",
             "ConvTranspose",
             "<group = 2, pads = [1, 1, 1, 1]>",
             {4, 2, 3, 3},
             false},
        Case{"transposed_depthwise", "ConvTranspose", "<group = 4>", {4, 1, 2, 2}, true}),
    [](const auto& param) { return param.param.name; });

// One channel by hand: a = 2 / sqrt(3 + 1) = 1; W' = 5, B' = 1 * (7 - 10) + 0.5 = -2.5.
TEST(FoldBatchNormalization, TheFormula) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,1,2,2] x) => (float[1,1,2,2] y)
    <float[1,1,1,1] w = {5}, float[1] cb = {7}, float[1] s = {2}, float[1] b = {0.5},
     float[1] m = {10}, float[1] v = {3}> {
      c = Conv (x, w, cb)  y = BatchNormalization <epsilon = 1.0> (c, s, b, m, v)
    })");
  EXPECT_EQ(run_pass(model, "fold_batch_normalization").applied, 1);
  const onnx::NodeProto& node = model.proto().graph().node(0);
  EXPECT_EQ(model.initializer(node.input(1))->data<float>()[0], 5.0F);
  EXPECT_EQ(model.initializer(node.input(2))->data<float>()[0], -2.5F);
}

TEST(FoldBatchNormalization, BehindGemmAndMatMul) {
  for (const std::string product :
       {"Gemm (x, w, gb)", "Gemm <alpha = 0.5, beta = 2.0> (x, w, gb)", "Gemm <transB = 1> (x, w)",
        "Gemm <beta = 0.0> (x, w, gb)", "MatMul (x, w)"}) {
    Model model = model_from_text(fmt::format(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[3,4] x) => (float[3,4] y) "
        "<{}, float[4] gb = {{1, 2, 3, 4}}, float[4,4] w = {{1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, "
        "-4, 0.5, 0.25, 0.125, 1}}> "
        "{{ c = {} y = BatchNormalization <epsilon = 0.01> (c, s, b, m, v) }}",
        kParameters, product));
    const Model before = model.clone();
    const PassOutcome outcome = run_pass(model, "fold_batch_normalization");
    EXPECT_EQ(outcome.applied, 1) << product << first_reason(outcome);
    ASSERT_THAT(op_types(model), ElementsAre("Gemm")) << product;
    expect_within_noise(before, model, {{"x", ramp({3, 4})}});
  }
}

Model before_conv(const std::string& op, const std::string& attributes, const std::string& bias,
                  const Shape& weight) {
  onnx::ModelProto proto = proto_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,4,6,7] x) => (float[2,o,p,q] y) "
      "<{}> {{ r = Relu (x) n = BatchNormalization <epsilon = 0.01> (r, s, {}) "
      "y = {} {} (n, w) }}",
      kParameters, bias, op, attributes));
  *proto.mutable_graph()->add_initializer() = to_tensor_proto(ramp(weight), "w");
  auto model = Model::from_proto(std::move(proto));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(model).value();
}

TEST(FoldBatchNormalization, BeforeAConvWithoutPadding) {
  for (const auto& [attributes, weight] :
       std::vector<std::pair<std::string, Shape>>{{"", {5, 4, 3, 3}},
                                                  {"<group = 2>", {6, 2, 3, 3}},
                                                  {"<group = 4>", {8, 1, 1, 1}},
                                                  {"<auto_pad = \"VALID\">", {5, 4, 3, 3}}}) {
    Model model = before_conv("Conv", attributes, "b, m, v", weight);
    const Model before = model.clone();
    const PassOutcome outcome = run_pass(model, "fold_batch_normalization");
    EXPECT_EQ(outcome.applied, 1) << attributes << first_reason(outcome);
    ASSERT_THAT(op_types(model), ElementsAre("Relu", "Conv"));
    expect_within_noise(before, model, {{"x", ramp({2, 4, 6, 7})}});
  }
}

TEST(FoldBatchNormalization, BeforeAConvThatPadsOnlyWithoutAnAddend) {
  const std::string pads = "<pads = [1, 1, 1, 1]>";
  Model model = before_conv("Conv", pads, "b, m, v", {5, 4, 3, 3});
  EXPECT_THAT(first_reason(run_pass(model, "fold_batch_normalization")),
              HasSubstr("the zeros of the padding do not have it"));
  Model same = before_conv("Conv", "<auto_pad = \"SAME_UPPER\">", "b, m, v", {5, 4, 3, 3});
  EXPECT_THAT(first_reason(run_pass(same, "fold_batch_normalization")), HasSubstr("padding"));
  Model transposed = before_conv("ConvTranspose", "", "b, m, v", {4, 5, 3, 3});
  EXPECT_THAT(first_reason(run_pass(transposed, "fold_batch_normalization")),
              HasSubstr("pixels at the border see fewer taps"));
  // bias 0 and mean 0: no addend, and padded zeros stay zero.
  for (const auto& [op, weight] : std::vector<std::pair<std::string, Shape>>{
           {"Conv", {5, 4, 3, 3}}, {"ConvTranspose", {4, 5, 3, 3}}}) {
    Model scaled = before_conv(op, pads, "zero, zero, v", weight);
    const Model before = scaled.clone();
    EXPECT_EQ(run_pass(scaled, "fold_batch_normalization").applied, 1) << op;
    ASSERT_THAT(op_types(scaled), ElementsAre("Relu", op));
    expect_within_noise(before, scaled, {{"x", ramp({2, 4, 6, 7})}});
  }
}

TEST(FoldBatchNormalization, Refusals) {
  for (const auto& [body, reason] : std::vector<std::pair<std::string, std::string>>{
           {"c = Conv (x, w) n = BatchNormalization (c, s, b, m, v) y = Add (n, c)",
            "'c' is used elsewhere too"},
           {"c = Conv (x, w) d = Conv (c, w) y = BatchNormalization (d, s, b, m, v)",
            "its weight 'w' is used 2 times"},
           {"a = Abs (w) c = Conv (x, a) y = BatchNormalization (c, s, b, m, v)",
            "its weight 'a' is not a constant"},
           {"a = Abs (s) c = Conv (x, w) y = BatchNormalization (c, a, b, m, v)",
            "its parameter 'a' is not a constant"},
           {"c = Conv (x, w) n = BatchNormalization (c, s, b, m, negative) y = Neg (n)",
            "variance + epsilon of channel 0 is -0.99999"},
           {"r = Relu (x) n = BatchNormalization (r, s, b, m, v) y = Neg (n)",
            "no Conv, ConvTranspose, Gemm or MatMul is before it"}}) {
    Model model = model_from_text(fmt::format(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,4,6,7] x) => (float[2,4,6,7] y) "
        "<{}, float[4] negative = {{-1, 1, 1, 1}}, float[4,4,1,1] w = {{1, 2, 3, 4, 5, 6, 7, 8, "
        "9, 8, 7, 6, 5, 4, 3, 2}}> {{ {} }}",
        kParameters, body));
    const PassOutcome outcome = run_pass(model, "fold_batch_normalization");
    EXPECT_EQ(outcome.applied, 0) << body;
    EXPECT_THAT(first_reason(outcome), HasSubstr(reason)) << body;
  }
}

TEST(FoldBatchNormalization, RefusesTraining) {
  Model model = model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,4,6,7] x) => (float[2,4,6,7] y) "
      "<{}> {{ y, mean, var = BatchNormalization <training_mode = 1> (x, s, b, m, v) }}",
      kParameters));
  EXPECT_THAT(first_reason(run_pass(model, "fold_batch_normalization")),
              HasSubstr("it is in training mode"));
}

TEST(FoldBatchNormalization, RefusesWhatFloat16CannotHold) {
  const auto outcome_of = [](float weight, float scale) {
    onnx::ModelProto proto = proto_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float16[1,1,2,2] x) => (float16[1,1,2,2] y) {
        c = Conv (x, w)  y = BatchNormalization (c, s, b, b, v)
      })");
    for (const auto& [name, value] :
         std::map<std::string, float>{{"w", weight}, {"s", scale}, {"b", 0.0F}, {"v", 1.0F}}) {
      const Shape shape = name == "w" ? Shape{1, 1, 1, 1} : Shape{1};
      *proto.mutable_graph()->add_initializer() = to_tensor_proto(
          Tensor::from<std::uint16_t>(DType::kFloat16, shape, {float_to_float16(value)}), name);
    }
    auto model = Model::from_proto(std::move(proto));
    EXPECT_TRUE(model.ok()) << model.status().message();
    return run_pass(*model, "fold_batch_normalization");
  };
  EXPECT_EQ(outcome_of(300, 2).applied, 1);
  EXPECT_THAT(first_reason(outcome_of(300, 300)),
              AllOf(HasSubstr("a folded value would be 9e+04"), HasSubstr("65504")));
  EXPECT_THAT(first_reason(outcome_of(0.001F, 0.001F)),
              HasSubstr("below the smallest normal float16"));
}

}  // namespace
}  // namespace tenonnx
