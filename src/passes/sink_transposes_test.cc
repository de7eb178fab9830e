// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/extract.h"
#include "passes/layout.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The values of these tests are sums and products of a few numbers below 8: one ulp each.
constexpr double kTolerance = 8 * 0x1p-23;

void expect_same(const Model& before, const Model& after, const TensorMap& inputs) {
  const TensorMap a = run_on_cpu(before, inputs), b = run_on_cpu(after, inputs);
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, old] : a) {
    ASSERT_EQ(old.shape(), b.at(name).shape()) << name;
    for (std::int64_t i = 0; i < old.size(); ++i)
      ASSERT_NEAR(old.data<float>()[i], b.at(name).data<float>()[i], kTolerance) << name << i;
  }
}

TEST(SinkTransposes, APairAroundElementWiseOperatorsVanishes) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2,3,4] x) => (float[1,2,3,4] y)
      <float[2] bias = {0.5, -1}, float two = {2}, float[3,1,1] rows = {1, 2, 3}, float low = {-1}> {
      r = Neg (x)  a = Transpose <perm = [0, 2, 3, 1]> (r)  b = Add (a, bias)  s = Sigmoid (b)
      c = Mul (b, s)  d = Mul (two, c)  e = Add (d, rows)  f = Clip (e, low)
      y = Transpose <perm = [0, 3, 1, 2]> (f)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "sink_transposes");
  EXPECT_EQ(outcome.applied, 1);
  EXPECT_EQ(outcome.sites[0].what, "moves down: 2 Transposes fewer");
  EXPECT_THAT(op_types(model), ElementsAre("Neg", "Add", "Sigmoid", "Mul", "Mul", "Add", "Clip"));
  expect_same(before, model, {{"x", ramp({1, 2, 3, 4})}});
}

// What another tool needs to compare tensor by tensor: each tensor that is gone, in its new layout.
TEST(SinkTransposes, SaysWhereTheTensorsAreNow) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2,3,4] x) => (float[1,2,3,4] y, float[1,4,3,2] z) <float[2] bias = {0.5, -1}> {
      r = Neg (x)  a = Transpose <perm = [0, 2, 3, 1]> (r)  b = Add (a, bias)  c = Sigmoid (b)
      d = Transpose <perm = [0, 3, 1, 2]> (c)  y = Neg (d)
      e = Transpose <perm = [0, 2, 1, 3]> (c)  z = Neg (e)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "sink_transposes");
  EXPECT_EQ(outcome.applied, 1);
  std::vector<std::string> names;
  for (const auto& [old_name, moved] : outcome.moved) {
    names.push_back(old_name);
    const auto was = extract(before, {"x"}, {old_name}), is = extract(model, {"x"}, {moved.name});
    ASSERT_TRUE(was.ok() && is.ok()) << old_name;
    const TensorMap inputs = {{"x", ramp({1, 2, 3, 4})}};
    const Tensor old_value = run_on_cpu(*was, inputs).begin()->second;
    const Tensor value = transposed(run_on_cpu(*is, inputs).begin()->second, moved.perm);
    ASSERT_EQ(value.shape(), old_value.shape()) << old_name;
    for (std::int64_t i = 0; i < value.size(); ++i)
      ASSERT_NEAR(value.data<float>()[i], old_value.data<float>()[i], kTolerance) << old_name;
  }
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
}

TEST(SinkTransposes, TwoOperandsBecomeOneBehind) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,N,4] x, float[2,1,4] z) => (float[4,2,N] y) {
      a = Transpose <perm = [2, 0, 1]> (x)  b = Transpose <perm = [2, 0, 1]> (z)  y = Add (a, b)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "sink_transposes").applied, 1);
  EXPECT_THAT(op_types(model), ElementsAre("Add", "Transpose"));
  expect_same(before, model, {{"x", ramp({2, 3, 4})}, {"z", ramp({2, 1, 4})}});
}

TEST(SinkTransposes, AxesOfConcatReductionsAndSoftmaxMove) {
  for (const bool as_input : {true, false}) {
    Model model = model_from_text(
        std::string("<ir_version: 8, opset_import: [\"\" : ") + (as_input ? "18" : "13") +
        R"(]> g (float[2,3,4] x, float[2,3,4] z) => (float[2,8,3] y)
           <int64[1] last = {-1}, float[4,1,2] c = {1, 2, 3, 4, 5, 6, 7, 8}> {
          a = Transpose <perm = [2, 1, 0]> (x)  b = Transpose <perm = [2, 1, 0]> (z)
          p = Softmax <axis = 1> (a)
          q = )" +
        (as_input ? "ReduceMean (b, last)" : "ReduceMean <axes = [-1]> (b)") +
        R"(  s = Add (p, q)  t = Concat <axis = 0> (s, b)  w = Transpose <perm = [2, 0, 1]> (t)
          y = Neg (w) })");
    const Model before = model.clone();
    const PassOutcome outcome = run_pass(model, "sink_transposes");
    EXPECT_EQ(outcome.applied, 1);
    EXPECT_EQ(op_counts(model)["Transpose"], 1);  // before: 3
    expect_same(before, model, {{"x", ramp({2, 3, 4})}, {"z", ramp({2, 3, 4})}});
  }
}

TEST(SinkTransposes, WhatIsReadInsideKeepsItsNameAndLayout) {
  // One Transpose is needed for the output m, two fewer than the three before.
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x, float[2,3] z) => (float[3,2] m, float[2,3] y) {
      a = Transpose (x)  b = Transpose (z)  m = Add (a, b)  c = Relu (m)  d = Transpose (c)
      y = Neg (d)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "sink_transposes").applied, 1);
  EXPECT_EQ(op_counts(model)["Transpose"], 1);
  expect_same(before, model, {{"x", ramp({2, 3})}, {"z", ramp({2, 3})}});
}

TEST(SinkTransposes, WhereNothingIsGainedItStays) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3,4] x, float[4,3,2] z) => (float[4,3,2] y, float[4,3,2] w, float[4,3,2] v) {
      a = Transpose (x)  y = Relu (a)  w = Mul (a, z)  b = Transpose (x)  v = Softmax <axis = -1> (b)
    })");
  const PassOutcome outcome = run_pass(model, "sink_transposes");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 2U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("as many Transposes would remain"));
}

TEST(SinkTransposes, ABodyThatReadsTheTensorCounts) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x, bool c) => (float[2,3] y, float[3,2] z) {
      a = Transpose (x)  b = Relu (a)  d = Transpose (b)  y = Neg (d)
      z = If (c) <then_branch = t () => (float[3,2] p) { p = Abs (b) },
                  else_branch = e () => (float[3,2] q) { q = Neg (b) }>
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "sink_transposes").applied, 1);
  EXPECT_EQ(op_counts(model)["Transpose"], 1);
  for (const std::uint8_t c : {0, 1})
    expect_same(before, model,
                {{"x", ramp({2, 3})}, {"c", Tensor::from<std::uint8_t>(DType::kBool, {}, {c})}});
}

}  // namespace
}  // namespace tenonnx
