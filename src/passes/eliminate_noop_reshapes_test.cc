// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EliminateNoopReshapes, TheShapeThatIsThereAlready) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[2,3] y) <int64[2] target = {-1, 3}> {
      a = Relu (x)  b = Reshape (a, target)  c = Flatten <axis = 1> (b)  d = Neg (c)
      y = Reshape (d, target)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "eliminate_noop_reshapes");
  EXPECT_EQ(outcome.applied, 3);
  EXPECT_THAT(op_types(model), ElementsAre("Relu", "Neg"));
  const TensorMap inputs = {{"x", ramp({2, 3})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateNoopReshapes, ZerosKeepDynamicDimensions) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,M,4] x) => (float[N,M,4] y, float[N,P,Q] z)
      <int64[3] same = {0, -1, 4}, int64[3] other = {0, 4, -1}> {
      a = Reshape (x, same)  y = Relu (a)  b = Reshape (x, other)  z = Neg (b)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "eliminate_noop_reshapes").applied, 1);
  EXPECT_EQ(op_counts(model)["Reshape"], 1);
  const TensorMap inputs = {{"x", ramp({2, 5, 4})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateNoopReshapes, PairsOfDynamicShapeWithAxesAsInputOrAttribute) {
  for (const bool input : {true, false}) {
    Model model = model_from_text(input ? R"(<ir_version: 8, opset_import: ["" : 17]>
                   g (float[N,M] x) => (float[N,M] y) <int64[1] end = {-1}, int64[1] two = {2}> {
                     a = Relu (x)  b = Unsqueeze (a, end)  c = Squeeze (b, two)  y = Neg (c) })"
                                        : R"(<ir_version: 7, opset_import: ["" : 12]>
                   g (float[N,M] x) => (float[N,M] y) {
                     a = Relu (x)  b = Unsqueeze <axes = [2]> (a)  c = Squeeze <axes = [2]> (b)
                     y = Neg (c) })");
    const Model before = model.clone();
    EXPECT_EQ(run_pass(model, "eliminate_noop_reshapes").applied, 1);
    EXPECT_THAT(op_types(model), ElementsAre("Relu", "Neg"));
    const TensorMap inputs = {{"x", ramp({3, 2})}};
    expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
  }
}

TEST(EliminateNoopReshapes, WhatChangesTheShapeOrJoinsNamesStays) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x, float[N,M] d) => (float[3,2] y, float[2,3] z, float[N,M] w)
      <int64[2] turned = {3, 2}, int64[2] same = {2, 3}, int64[2] open = {3, -1}> {
      y = Reshape (x, turned)  z = Reshape (x, same)  w = Reshape (d, open)
    })");
  const PassOutcome outcome = run_pass(model, "eliminate_noop_reshapes");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("keep their own names"));
}

}  // namespace
}  // namespace tenonnx
