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

// Noise is none of the known mistakes.
TEST(FaultKind, WhatNothingExplainsIsTheKernel) {
  EXPECT_EQ(
      changed([](double v, auto i) { return v + 0.1 * std::sin(static_cast<double>(i * i)); }).kind,
      FaultKind::kKernel);
}

}  // namespace
}  // namespace tenonnx
