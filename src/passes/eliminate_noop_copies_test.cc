// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EliminateNoopCopies, EveryKindGoes) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2,4,4] x) => (float[1,2,4,4] y)
      <int64[1] zero = {0}, int64[1] four = {4}, int64[1] last = {-1}, int64[1] one = {1},
       int64[8] pads = {0, 0, 0, 0, 0, 0, 0, 0}, int64[4] ones = {1, 1, 1, 1},
       int64[2] all = {0, -1}, int64[4] sizes = {1, 2, 4, 4}, float[4] scales = {1, 1, 1, 1}> {
      a = Relu (x)  b = Slice (a, zero, four, last, one)  c = Pad (b, pads)  d = Concat <axis = 1> (c)
      e = Split <axis = 1> (d)  f = Tile (e, ones)  h = Expand (f, ones)
      i = Gather <axis = 1> (h, all)  j = Resize <mode = "linear"> (i, , , sizes)
      k = Resize <mode = "cubic"> (j, , scales)  l = Sum (k)  m = Max (l)  y = Neg (m)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "eliminate_noop_copies");
  EXPECT_EQ(outcome.applied, 11);
  EXPECT_THAT(op_types(model), ElementsAre("Relu", "Neg"));
  EXPECT_EQ(model.proto().graph().initializer_size(), 0);
  const TensorMap inputs = {{"x", ramp({1, 2, 4, 4})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateNoopCopies, DynamicDimensionsAndAttributeForms) {
  Model model = model_from_text(R"(<ir_version: 7, opset_import: ["" : 9]>
    g (float[N,M] x) => (float[N,M] y) {
      a = Slice <starts = [0, 0], ends = [9223372036854775807, 2147483647]> (x)
      b = Pad <pads = [0, 0, 0, 0]> (a)  y = Neg (b)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "eliminate_noop_copies").applied, 2);
  EXPECT_THAT(op_types(model), ElementsAre("Neg"));
  const TensorMap inputs = {{"x", ramp({2, 3})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateNoopCopies, WhatSelectsReversesOrReordersStays) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,2] x, float[N,2] d) => (float[4,2] p, float[4,2] q, float[N,2] s, float[8,2] t, float[4,2] u)
      <int64[1] end = {-1}, int64[1] min = {-9223372036854775807}, int64[1] zero = {0},
       int64[1] minus = {-1}, int64[2] turned = {1, 0}, int64[1] four = {4}> {
      p = Slice (x, end, min, zero, minus)  q = Gather <axis = 1> (x, turned)
      s = Slice (d, zero, four, zero)  t = Concat <axis = 0> (x, x)  u = Concat <axis = 0> (x)
    })");
  const PassOutcome outcome = run_pass(model, "eliminate_noop_copies");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);  // the Concat of one joins an input and an output
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("keep their own names"));
}

}  // namespace
}  // namespace tenonnx
