// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EliminateZeroAdditions, ZerosGo) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[2,3] y) <float zero = {0}, float[3] zeros = {0, 0, 0},
                                        float minus = {-0.0}> {
      a = Add (x, zero)  b = Add (zeros, a)  c = Sub (b, minus)  y = Neg (c)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "eliminate_zero_additions").applied, 3);
  EXPECT_THAT(op_types(model), ElementsAre("Neg"));
  // No zero in the input: the same bits.
  const TensorMap inputs = {{"x", ramp({2, 3})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateZeroAdditions, WhatComputesOrJoinsStays) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[3] x) => (float[3] a, float[2,3] b, float[3] c, float[3] d)
      <float zero = {0}, float[2,1] tall = {0, 0}, float[3] some = {0, 0, 1}> {
      a = Sub (zero, x)  b = Add (x, tall)  c = Add (x, some)  d = Add (x, zero)
    })");
  const PassOutcome outcome = run_pass(model, "eliminate_zero_additions");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("keep their own names"));
}

}  // namespace
}  // namespace tenonnx
