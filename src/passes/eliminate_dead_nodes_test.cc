// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;

TEST(EliminateDeadNodes, WhatNothingUsesGoes) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}, float unread = {1}> {
      a = Add (x, w)  b = Relu (a)  y = Neg (x)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "eliminate_dead_nodes");
  EXPECT_EQ(outcome.applied, 4);
  ASSERT_EQ(outcome.sites.size(), 4U);
  EXPECT_EQ(outcome.sites[0].node, "Relu 'node_1'");
  EXPECT_EQ(outcome.sites[1].node, "Add 'node_0'");
  EXPECT_EQ(outcome.sites[2].node, "initializer 'w'");
  EXPECT_THAT(op_types(model), ElementsAre("Neg"));
  const TensorMap inputs = {{"x", ramp({4})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateDeadNodes, WhatABodyReadsAndHalfUsedNodesStay) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, bool c) => (float[4] y) {
      a = Neg (x)  p, q = Split <axis = 0> (a)
      y = If (c) <then_branch = t () => (float[4] r) { dead = Abs (p)  r = Concat <axis = 0> (p, p) },
                  else_branch = e () => (float[4] s) { s = Relu (a) }>
    })");
  const PassOutcome outcome = run_pass(model, "eliminate_dead_nodes");
  EXPECT_EQ(outcome.applied, 1);
  EXPECT_EQ(outcome.sites[0].node, "Abs (makes 'dead')");
  EXPECT_THAT(op_types(model), ElementsAre("Neg", "Split", "If"));
  EXPECT_EQ(run_pass(model, "eliminate_dead_nodes").applied, 0);
}

}  // namespace
}  // namespace tenonnx
