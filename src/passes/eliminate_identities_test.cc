// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EliminateIdentities, IdentityAndDropoutOfInferenceGo) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y) <float ratio = {0.5}, bool training = {0}> {
      a = Identity (x)  b = Dropout (a, ratio, training)  c = Relu (b)  y = Dropout (c)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "eliminate_identities");
  EXPECT_EQ(outcome.applied, 3);
  EXPECT_THAT(op_types(model), ElementsAre("Relu"));
  EXPECT_EQ(model.proto().graph().initializer_size(), 0);
  const TensorMap inputs = {{"x", ramp({4})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateIdentities, RefusesTrainingAMaskAndAJoin) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, bool t) => (float[4] y, float[4] z, bool[4] w) <float ratio = {0.5}> {
      a = Relu (x)  b = Dropout (a, ratio, t)  c, w = Dropout (b)  y = Neg (c)  z = Identity (x)
    })");
  const PassOutcome outcome = run_pass(model, "eliminate_identities");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 3U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("training"));
  EXPECT_THAT(outcome.skipped[1].reason, HasSubstr("mask"));
  EXPECT_THAT(outcome.skipped[2].reason, HasSubstr("keep its own name"));
}

}  // namespace
}  // namespace tenonnx
