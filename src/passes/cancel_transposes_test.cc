// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CancelTransposes, ThreeInARowBecomeOneAndInversesVanish) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3,4,5] x) => (float[3,4,2,5] y, float[2,3,4,5] z) {
      a = Transpose <perm = [0, 2, 3, 1]> (x)  b = Transpose <perm = [3, 0, 1, 2]> (a)
      y = Transpose <perm = [0, 2, 1, 3]> (b)
      c = Transpose <perm = [0, 3, 1, 2]> (a)  z = Neg (c)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "cancel_transposes").applied, 3);
  EXPECT_THAT(op_types(model), ElementsAre("Transpose", "Neg"));
  const TensorMap inputs = {{"x", ramp({2, 3, 4, 5})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(CancelTransposes, TheDefaultPermutationReverses) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,3,4] x) => (float[N,3,4] y, float[4,3,N] w) {
      a = Relu (x)  w = Transpose (a)  b = Transpose (w)  y = Neg (b)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "cancel_transposes").applied, 1);
  EXPECT_EQ(op_counts(model)["Transpose"], 1);  // w is an output
  const TensorMap inputs = {{"x", ramp({2, 3, 4})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(CancelTransposes, RefusesToJoinAnInputAndAnOutput) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[2,3] y) { a = Transpose (x)  y = Transpose (a) })");
  const PassOutcome outcome = run_pass(model, "cancel_transposes");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("must keep their names"));
}

}  // namespace
}  // namespace tenonnx
