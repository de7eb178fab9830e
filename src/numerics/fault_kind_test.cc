// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/fault_kind.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "base/half.h"
#include "flow/compare_for_test.h"
#include "ort/capture.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

TensorMap run(const Model& model, const TensorMap& inputs) {
  const auto graph = make_cpu_executor()->load(model, {});
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  auto made = (*graph)->run(inputs_of(**graph, inputs));
  EXPECT_TRUE(made.ok());
  return *made;
}

// What `wrong` gives, explained with `right`.
KindFinding of(const std::string& right, const std::string& wrong, const TensorMap& inputs,
               DType storage = DType::kFloat32) {
  const Model model = parse_model(right);
  PieceCase one;
  one.piece = &model;
  one.inputs = inputs;
  one.output = "y";
  one.expected = run(model, inputs).at("y");
  one.got = run(parse_model(wrong), inputs).at("y");
  one.storage = storage;
  const auto found = kind_of(one);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return found.ok() ? *found : KindFinding();
}

// The right values, changed by a function of value and position.
KindFinding changed(const std::function<double(double, std::int64_t)>& change,
                    DType storage = DType::kFloat32) {
  const Model model = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 6] x) => (float[4, 6] y) { y = Tanh(x) })");
  PieceCase one;
  one.piece = &model;
  one.inputs = {{"x", uniform({4, 6}, -3, 3, 5)}};
  one.output = "y";
  one.expected = run(model, one.inputs).at("y");
  one.got = one.expected.clone();
  for (std::int64_t i = 0; i < one.got.size(); ++i)
    one.got.mutable_data<float>()[i] = static_cast<float>(change(one.expected.data<float>()[i], i));
  one.storage = storage;
  const auto found = kind_of(one);
  EXPECT_TRUE(found.ok());
  return found.ok() ? *found : KindFinding();
}

TEST(FaultKind, OfTheValuesAlone) {
  EXPECT_EQ(changed([](double v, auto) { return 1.25 * v; }).kind, FaultKind::kScale);
  EXPECT_EQ(changed([](double v, auto) { return v + 0.125; }).kind, FaultKind::kOffset);
  EXPECT_EQ(changed([](double v, auto) { return std::clamp(v, -0.5, 0.5); }).kind,
            FaultKind::kRange);
  EXPECT_EQ(changed([](double v, auto) { return std::nearbyint(v); }).kind, FaultKind::kPrecision);
  EXPECT_EQ(changed([](double v, auto i) { return i == 3 ? NAN : v; }).kind, FaultKind::kRange);
}

// A bfloat16 in a float16 device is narrower than it says; a float16 there is what it says.
TEST(FaultKind, RoundedFurtherThanTheStorage) {
  const auto to_bfloat16 = [](double v, auto) {
    return static_cast<double>(bfloat16_to_float(float_to_bfloat16(static_cast<float>(v))));
  };
  EXPECT_EQ(changed(to_bfloat16, DType::kFloat16).kind, FaultKind::kPrecision);
}

TEST(FaultKind, OtherPlaces) {
  const Model model = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 6] x) => (float[4, 6] y) { y = Tanh(x) })");
  PieceCase one;
  one.piece = &model;
  one.inputs = {{"x", uniform({4, 6}, -3, 3, 5)}};
  one.output = "y";
  one.expected = run(model, one.inputs).at("y");
  one.got = one.expected.clone();
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 6; ++c)  // transposed to [6, 4], read as [4, 6]
      one.got.mutable_data<float>()[c * 4 + r] = one.expected.data<float>()[r * 6 + c];
  const auto found = kind_of(one);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->kind, FaultKind::kLayout);
  EXPECT_THAT(found->text, HasSubstr("transposed by [1, 0]"));
}

TEST(FaultKind, VariantsOfOneOperator) {
  const auto sample = [](const std::string& attributes, const char* grid = "grid") {
    return R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,9,7] data, float[1,5,4,2] grid) => (float[1,3,5,4] y)
<float[2] shift = {0.142857, 0.111111}> { s = Add(grid, shift) y = GridSample <)" +
           attributes + ">(data, " + grid + ") }";
  };
  const TensorMap inputs = {{"data", uniform({1, 3, 9, 7}, -1, 1, 1)},
                            {"grid", uniform({1, 5, 4, 2}, -1.2, 1.2, 2)}};
  // Without the unused Add: the piece has one node.
  const std::string right = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,9,7] data, float[1,5,4,2] grid) => (float[1,3,5,4] y)
{ y = GridSample <align_corners = 0>(data, grid) })";
  const KindFinding corners = of(right, sample("align_corners = 1"), inputs);
  EXPECT_EQ(corners.kind, FaultKind::kSampling);
  EXPECT_THAT(corners.text, HasSubstr("align_corners = 1 instead of 0"));
  EXPECT_THAT(of(right, sample("align_corners = 0, padding_mode = \"border\""), inputs).text,
              HasSubstr("padding_mode = border"));
  EXPECT_THAT(of(right, sample("align_corners = 0", "s"), inputs).text, HasSubstr("0.5 pixel"));

  const auto norm = [](const char* epsilon) {
    return std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 8] x) => (float[4, 8] y) <float[8] one = {1,1,1,1,1,1,1,1}>
{ y = LayerNormalization <axis = -1, epsilon = )") +
           epsilon + ">(x, one) }";
  };
  EXPECT_EQ(of(norm("0.00001"), norm("0.1"), {{"x", uniform({4, 8}, -1, 1, 3)}}).kind,
            FaultKind::kEpsilon);

  const auto soft = [](const char* axis) {
    return std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[5, 8] x) => (float[5, 8] y) { y = Softmax <axis = )") +
           axis + ">(x) }";
  };
  EXPECT_EQ(of(soft("-1"), soft("0"), {{"x", uniform({5, 8}, -3, 3, 4)}}).kind, FaultKind::kLayout);
}

TEST(FaultKind, ASoftmaxWhoseInputsAreCutOff) {
  const std::string right = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[5, 8] x) => (float[5, 8] y) { y = Softmax <axis = -1>(x) })";
  const std::string wrong = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[5, 8] x) => (float[5, 8] y) <float low = {-4}, float high = {4}>
{ c = Clip(x, low, high) y = Softmax <axis = -1>(c) })";
  EXPECT_EQ(of(right, wrong, {{"x", uniform({5, 8}, -12, 12, 6)}}).kind, FaultKind::kRange);
}

TEST(FaultKind, OtherWeightsAreNotGuessedAtAsAScale) {
  const auto product = [](const char* weights) {
    return std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[5, 3] x) => (float[5, 2] y) <float[3, 2] w = {)") +
           weights + "}> { y = MatMul(x, w) }";
  };
  const KindFinding found = of(product("1, 2, 3, 4, 5, 6"), product("2, -1, 0, 3, 1, 1"),
                               {{"x", uniform({5, 3}, -1, 1, 7)}});
  EXPECT_EQ(found.kind, FaultKind::kWeights);
}

// Saturation above alone, of inputs with a bound that no coarse step meets: within a Softmax 5 % of
// 8.3 are a factor of 1.5.
TEST(FaultKind, ASoftmaxWhoseInputsAreCutOffAbove) {
  const std::string right = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[5, 8] x) => (float[5, 8] y) { y = Softmax <axis = -1>(x) })";
  const std::string wrong = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[5, 8] x) => (float[5, 8] y) <float high = {8.3}>
{ c = Min(x, high) y = Softmax <axis = -1>(c) })";
  const KindFinding found = of(right, wrong, {{"x", uniform({5, 8}, -20, 20, 6)}});
  EXPECT_EQ(found.kind, FaultKind::kRange);
  EXPECT_GT(found.explained, 0.99);
}

// What is cut off or rounded to next to nothing is next to 0 times the right values too.
TEST(FaultKind, NextToNothingIsNoScale) {
  EXPECT_EQ(changed([](double v, auto) { return std::clamp(v, -0.003, 0.003); }).kind,
            FaultKind::kRange);
  EXPECT_EQ(changed([](double v, auto) { return std::trunc(0.99 * v); }).kind,
            FaultKind::kPrecision);
}

// From the least to the greatest value in 15 steps: which 15 is not among the forms that are tried.
TEST(FaultKind, AFewLevelsArePrecision) {
  const Model model = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[8, 64] x) => (float[8, 64] y) { y = Tanh(x) })");
  PieceCase one;
  one.piece = &model;
  one.inputs = {{"x", uniform({8, 64}, -1, 3, 5)}};
  one.output = "y";
  one.expected = run(model, one.inputs).at("y");
  one.got = one.expected.clone();
  float* values = one.got.mutable_data<float>();
  for (std::int64_t i = 0; i < one.got.size(); ++i)
    values[i] = std::nearbyint((values[i] + 0.7F) * 9) / 9 - 0.7F;
  const auto found = kind_of(one);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->kind, FaultKind::kPrecision) << found->text;
}

// The squares of a device that writes a LayerNormalization out.
TEST(FaultKind, SquaresThatAreCutOff) {
  const std::string head = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[6, 16] x) => (float[6, 16] y) <float[16] w = {1,2,1,2,1,2,1,2,1,2,1,2,1,2,1,2}, float e = {0.00001}, float high = {30}>
{ )";
  const std::string right = head + "y = LayerNormalization <axis = -1, epsilon = 0.00001>(x, w) }";
  const std::string wrong = head + R"(
  m = ReduceMean <axes = [-1]>(x) d = Sub(x, m) s = Mul(d, d) c = Min(s, high)
  v = ReduceMean <axes = [-1]>(c) a = Add(v, e) r = Sqrt(a) n = Div(d, r) y = Mul(n, w) })";
  const KindFinding found = of(right, wrong, {{"x", uniform({6, 16}, -12, 12, 8)}});
  EXPECT_EQ(found.kind, FaultKind::kRange) << found.text;
}

// Nearly even weights along either axis: a factor of 8 is near, the other axis is exact.
TEST(FaultKind, TheExactOfTwoThatExplain) {
  const auto soft = [](const char* axis) {
    return std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 32] x) => (float[4, 32] y) { y = Softmax <axis = )") +
           axis + ">(x) }";
  };
  EXPECT_EQ(of(soft("-1"), soft("0"), {{"x", uniform({4, 32}, -0.002, 0.002, 4)}}).kind,
            FaultKind::kLayout);
}

// Noise is none of the known mistakes.
TEST(FaultKind, WhatNothingExplainsIsTheKernel) {
  EXPECT_EQ(
      changed([](double v, auto i) { return v + 0.1 * std::sin(static_cast<double>(i * i)); }).kind,
      FaultKind::kKernel);
}

}  // namespace
}  // namespace tenonnx
