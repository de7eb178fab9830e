// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

// The text form of ONNX has no infinity: the value 99 of a constant stands for it, -99 for -Inf.
Model infinite_model(const std::string& text) {
  onnx::ModelProto proto = proto_from_text(text);
  for (auto& t : *proto.mutable_graph()->mutable_initializer())
    for (float& v : *t.mutable_float_data())
      if (std::fabs(v) == 99.0F) v = v > 0 ? kInf : -kInf;
  auto model = Model::from_proto(std::move(proto));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(model).value();
}

bool has_infinities(const Model& model) {
  for (const auto& t : model.proto().graph().initializer()) {
    const Tensor tensor = model.initializer(t.name()).value();
    if (tensor.dtype() != DType::kFloat32) continue;
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      if (std::isinf(tensor.data<float>()[i])) return true;
  }
  return false;
}

// Replaces everything; the outputs must be the same bits, which is within exp(-V/2) of them.
PassOutcome replace_all(Model& model, const TensorMap& inputs) {
  const TensorMap before = run_on_cpu(model, inputs);
  PassOutcome outcome = run_pass(model, "replace_infinite_constants");
  for (const auto& refusal : outcome.skipped) ADD_FAILURE() << refusal.reason;
  EXPECT_FALSE(has_infinities(model));
  expect_identical(before, run_on_cpu(model, inputs));
  return outcome;
}

constexpr const char* kHead = R"(<ir_version: 8, opset_import: ["" : 17]> g )";

TEST(ReplaceInfiniteConstants, AttentionMaskBeforeSoftmax) {
  Model model = infinite_model(std::string(kHead) + R"((float[2,3] x) => (float[2,3] y)
    <float[1,3] mask = {0, -99, 0}> { a = Add (x, mask)  y = Softmax (a) })");
  const PassOutcome outcome = replace_all(model, {{"x", ramp({2, 3})}});
  EXPECT_EQ(outcome.applied, 1);
  ASSERT_TRUE(outcome.bound.has_value());
  EXPECT_EQ(outcome.bound->value, 0);  // exp(-16376)
  EXPECT_THAT(outcome.sites[0].what, AllOf(HasSubstr("32752"), HasSubstr("Softmax 'node_1'")));
  // What lies between has another value, and another name.
  EXPECT_EQ(model.proto().graph().node(0).output(0), "a_finite");
}

TEST(ReplaceInfiniteConstants, AnchorsOfADeformableDetector) {
  Model model = infinite_model(std::string(kHead) + R"((float[1,3,2] x, int64[1,2,2] i) =>
    (float[1,2,2] y)
    <float[1,3,2] anchors = {0.5, -0.5, 99, 99, 1, 2}> {
      a = Add (x, anchors)  b = GatherElements <axis = 1> (a, i)  y = Sigmoid (b) })");
  replace_all(model, {{"x", ramp({1, 3, 2})},
                      {"i", Tensor::from<std::int64_t>(DType::kInt64, {1, 2, 2}, {1, 1, 2, 0})}});
}

TEST(ReplaceInfiniteConstants, WhereTopKReduceMaxAndComparison) {
  Model model = infinite_model(std::string(kHead) + R"((float[1,6] x, bool[1,6] m) =>
    (int64[1,3] i, float[1,3] s, float[1,1] r, bool[1,6] g)
    <float low = {-99}, int64[1] k = {3}, float t = {0.25}> {
      a = Where (m, x, low)
      v, i = TopK (a, k)  s = Sigmoid (v)
      r = ReduceMax <axes = [1]> (a)
      g = Greater (a, t) })");
  replace_all(model, {{"x", ramp({1, 6})},
                      {"m", Tensor::from<std::uint8_t>(DType::kBool, {1, 6}, {1, 0, 1, 1, 0, 1})}});
}

TEST(ReplaceInfiniteConstants, WhatAConstantMaskHidesAndBoundsOfClip) {
  Model model =
      infinite_model(std::string(kHead) + R"((float[1,3] x) => (float[1,3] y, float[1,3] z)
    <float[1,3] c = {1, 99, 2}, bool[1,3] m = {0, 1, 0}, float zero = {0}, float top = {99}> {
      y = Where (m, x, c)  z = Clip (x, zero, top) })");
  replace_all(model, {{"x", ramp({1, 3})}});
  EXPECT_EQ(model.proto().graph().node(1).op_type(), "Max");
}

// A Clip without a bound makes the largest finite number of an infinity, one to an infinite bound
// does not: the results must be the same bits for infinities and NaN too.
TEST(ReplaceInfiniteConstants, BoundsOfClipChangeNoInfinity) {
  const Tensor x = Tensor::from<float>(DType::kFloat32, {6}, {kInf, -kInf, NAN, 1e38F, -1, 7});
  const std::pair<const char*, const char*> cases[] = {
      {"zero, top", "Max"}, {"bottom, six", "Min"}, {"bottom, top", "Identity"}};
  for (const auto& [bounds, op_type] : cases) {
    Model model =
        infinite_model(fmt::format("{}(float[6] x) => (float[6] y) <float zero = {{0}}, float six "
                                   "= {{6}}, float top = {{99}}, "
                                   "float bottom = {{-99}}> {{ y = Clip (x, {}) }}",
                                   kHead, bounds));
    const TensorMap before = run_on_cpu(model, {{"x", x}});
    const PassOutcome outcome = run_pass(model, "replace_infinite_constants");
    EXPECT_EQ(outcome.applied, 1) << bounds;
    EXPECT_TRUE(outcome.skipped.empty()) << bounds;
    ASSERT_EQ(model.proto().graph().node_size(), 1) << bounds;
    EXPECT_EQ(model.proto().graph().node(0).op_type(), op_type);
    EXPECT_FALSE(has_infinities(model));
    const TensorMap after = run_on_cpu(model, {{"x", x}});
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const float was = before.at("y").data<float>()[i], is = after.at("y").data<float>()[i];
      EXPECT_TRUE(was == is || (std::isnan(was) && std::isnan(is)))
          << bounds << " of " << x.data<float>()[i] << ": " << was << ", now " << is;
    }
  }
}

TEST(ReplaceInfiniteConstants, RefusesWhatIsNotMasked) {
  const auto reason = [](const std::string& rest) {
    Model model = infinite_model(kHead + rest);
    const std::string before = model.serialize().value();
    const PassOutcome outcome = run_pass(model, "replace_infinite_constants");
    EXPECT_EQ(outcome.applied, 0);
    EXPECT_EQ(model.serialize().value(), before);
    return outcome.skipped.size() == 1 ? outcome.skipped[0].reason : "not one refusal";
  };
  EXPECT_THAT(reason("(float[2] x) => (float[2] y) <float c = {99}> { y = Add (x, c) }"),
              HasSubstr("reaches the output 'y'"));
  EXPECT_THAT(
      reason("(float[2] x) => (float[2] y) <float c = {99}> { a = Add (x, c)  y = Mul (a, x) }"),
      HasSubstr("comes to Mul 'node_1'"));
  // +Inf makes NaN of a Softmax.
  EXPECT_THAT(
      reason(
          "(float[2] x) => (float[2] y) <float[2] c = {99,0}> { a = Add (x, c)  y = Softmax (a) }"),
      HasSubstr("comes to Softmax"));
  // A constant mask that takes the infinity.
  EXPECT_THAT(reason("(float[2] x) => (float[2] y) <float[2] c = {99,0}, bool[2] m = {0,1}> "
                     "{ y = Where (m, x, c) }"),
              HasSubstr("reaches the output"));
  EXPECT_THAT(reason("(float[2] x) => (float[2] y) <float c = {-99}, float t = {20000}> "
                     "{ a = Add (x, c)  g = Less (a, t)  y = Cast <to = 1> (g) }"),
              HasSubstr("comes to Less"));
  EXPECT_THAT(reason("(float[2] x) => (float[2] y) <float c = {99}> { y = Clip (x, c) }"),
              HasSubstr("wrong side"));
  EXPECT_THAT(reason("(float[2] x) => (float[2] y) <float c = {99}> { y = Clip (x, c, c) }"),
              HasSubstr("wrong side"));
  EXPECT_THAT(reason("(float[2] x) => (float[2] y) <float c = {-99}> { y = Clip (x, c) }"),
              HasSubstr("without the other"));
}

TEST(ReplaceInfiniteConstants, TheConditionThatItStatesIsNeeded) {
  // Logits of -30000: the masked one is the larger then, which no condition excludes but |x| <=
  // V/2.
  Model model = infinite_model(std::string(kHead) + R"((float[2] x) => (float[2] y)
    <float[2] c = {-99, 0}> { a = Add (x, c)  y = Softmax (a) })");
  run_pass(model, "replace_infinite_constants");
  const Tensor x = Tensor::from<float>(DType::kFloat32, {2}, {0, -40000});
  EXPECT_EQ(run_on_cpu(model, {{"x", x}}).at("y").data<float>()[0], 1.0F);
}

TEST(ReplaceInfiniteConstants, ChecksItsOption) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y) { y = Relu (x) })");
  const std::vector<std::string> names = {"replace_infinite_constants"};
  for (const char* value : {"100", "inf", "nan", "1e39", "many"}) {
    EXPECT_THAT(
        run_passes(model, names, {{"replace_infinite_constants.value", value}}).status().message(),
        AllOf(HasSubstr("from 208 to 3e38"), HasSubstr(value)))
        << value;
  }
}

}  // namespace
}  // namespace tenonnx
