// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EliminateCommonSubexpressions, TwinsAndWhatIsBuiltOnThemGo) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,4] x) => (float[4,4] y) {
      a = Sigmoid (x)  b = Sigmoid (x)  c = Sigmoid (x)  d = Mul (x, a)  e = Mul (b, x)
      p, q = Split <axis = 0> (d)  r, s = Split <axis = 0> (e)
      t = Softmax <axis = 1> (p)  u = Softmax <axis = 0> (r)
      v = Concat <axis = 0> (t, s)  w = Concat <axis = 0> (u, q)  z = Add (v, w)  y = Sub (z, c)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "eliminate_common_subexpressions");
  EXPECT_EQ(outcome.applied, 4);
  EXPECT_THAT(op_types(model), ElementsAre("Sigmoid", "Mul", "Split", "Softmax", "Softmax",
                                           "Concat", "Concat", "Add", "Sub"));
  const TensorMap inputs = {{"x", ramp({4, 4})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateCommonSubexpressions, OutputsKeepTheirNames) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y, float[4] z, float[4] w) {
      a = Relu (x)  y = Relu (x)  z = Neg (a)  w = Neg (y)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "eliminate_common_subexpressions");
  EXPECT_EQ(outcome.applied, 1);
  EXPECT_EQ(outcome.renamed, (std::map<std::string, std::string>{{"a", "y"}}));
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("both make outputs of the graph"));
  const TensorMap inputs = {{"x", ramp({4})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateCommonSubexpressions, RandomOrderedAndUnlikeNodesStay) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, float[4] z, bool c) => (float[4] y) {
      a = RandomUniformLike (x)  b = RandomUniformLike (x)  d = Sub (x, z)  e = Sub (z, x)
      f = If (c) <then_branch = t () => (float[4] p) { p = Relu (a) },
                  else_branch = u () => (float[4] q) { q = Relu (b) }>
      h = If (c) <then_branch = t2 () => (float[4] p2) { p2 = Relu (a) },
                  else_branch = u2 () => (float[4] q2) { q2 = Neg (b) }>
      k = LeakyRelu <alpha = 0.1> (x)  l = LeakyRelu <alpha = 0.2> (x)  y = Sum (d, e, f, h, k, l)
    })");
  EXPECT_EQ(run_pass(model, "eliminate_common_subexpressions").applied, 0);
}

}  // namespace
}  // namespace tenonnx
