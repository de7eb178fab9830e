// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EliminateNoopTransposes, TheIdentityGoes) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,3] x, float[4] v) => (float[N,3] y, float[4] w) {
      a = Relu (x)  b = Transpose <perm = [0, 1]> (a)  y = Neg (b)  c = Transpose (v)  w = Neg (c)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "eliminate_noop_transposes").applied, 2);
  EXPECT_THAT(op_types(model), ElementsAre("Relu", "Neg", "Neg"));
  const TensorMap inputs = {{"x", ramp({2, 3})}, {"v", ramp({4})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateNoopTransposes, MovedOnesBecomeAReshapeBesideOne) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4,N,1] x) => (float[4,1,N] y) <int64[1] end = {3}> {
      a = Transpose <perm = [1, 0, 2, 3]> (x)  y = Squeeze (a, end)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "eliminate_noop_transposes").applied, 1);
  EXPECT_THAT(op_types(model), ElementsAre("Reshape", "Squeeze"));
  const TensorMap inputs = {{"x", ramp({1, 4, 5, 1})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateNoopTransposes, WhatMovesDataOrStandsAloneStays) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2,3] x, float[2,3] d) => (float[2,1,3] y, float[6] z, float[2,3] w)
      <int64[1] flat = {6}> {
      y = Transpose <perm = [1, 0, 2]> (x)
      a = Transpose (d)  z = Reshape (a, flat)
      w = Transpose <perm = [0, 1]> (d)
    })");
  const PassOutcome outcome = run_pass(model, "eliminate_noop_transposes");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("keep their own names"));
}

}  // namespace
}  // namespace tenonnx
