// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EliminateNoopArithmetic, NeutralConstantsGo) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x, int64[3] n, bool[3] t) => (float[2,3] y, int64[3] m, bool[3] u)
      <float one = {1}, float[3] ones = {1, 1, 1}, float[1,1] zero = {0}, float minus = {-0.0},
       int64 none = {0}, bool yes = {1}, bool no = {0}> {
      a = Mul (x, one)  b = Mul (ones, a)  c = Div (b, ones)  d = Sub (c, zero)  e = Add (d, minus)
      y = Neg (e)  i = Add (none, n)  m = Neg (i)  p = And (t, yes)  q = Or (no, p)  u = Not (q)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "eliminate_noop_arithmetic").applied, 8);
  EXPECT_THAT(op_types(model), ElementsAre("Neg", "Neg", "Not"));
  const float inf = std::numeric_limits<float>::infinity();
  TensorMap inputs;
  inputs["x"] = Tensor::from<float>(DType::kFloat32, {2, 3}, {-0.0F, 0.0F, inf, -inf, 1e-42F, -3});
  inputs["n"] = Tensor::from<std::int64_t>(DType::kInt64, {3}, {-1, 0, 7});
  inputs["t"] = Tensor::from<std::uint8_t>(DType::kBool, {3}, {1, 0, 1});
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateNoopArithmetic, WhatComputesOrBroadcastsStays) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[3] x, float[N] d) => (float[3] a, float[3] b, float[2,3] c, float[3] e, float[3] f, float[3] h)
      <float one = {1}, float zero = {0}, float[2,1] ones = {1, 1}, float[3] some = {1, 1, 2}> {
      a = Div (one, x)  b = Sub (zero, x)  c = Mul (x, ones)  e = Mul (x, some)  f = Add (x, zero)
      h = Mul (x, one)
    })");
  const PassOutcome outcome = run_pass(model, "eliminate_noop_arithmetic");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);  // h joins an input and an output
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("keep their own names"));
}

TEST(EliminateNoopArithmetic, OnesOfADynamicSizeStay) {
  // Three ones widen a dimension that may be 1.
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N] x) => (float[M] y) <float[3] ones = {1, 1, 1}> { a = Mul (x, ones)  y = Neg (a) })");
  EXPECT_EQ(run_pass(model, "eliminate_noop_arithmetic").applied, 0);
}

}  // namespace
}  // namespace tenonnx
