// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/fusion_test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DecomposeGelu, BothFormsAndBack) {
  Model model = model_from_text(R"(<ir_version: 9, opset_import: ["" : 20]>
    g (float[2,16] x) => (float[2,16] y, float[2,16] z) {
      y = Gelu (x)  z = Gelu <approximate = "tanh"> (x)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "decompose_gelu").applied, 2);
  EXPECT_THAT(op_types(model), ElementsAre("Div", "Erf", "Add", "Mul", "Mul", "Mul", "Mul", "Mul",
                                           "Add", "Mul", "Tanh", "Add", "Mul", "Mul"));
  const TensorMap inputs = {{"x", ramp({2, 16})}};
  expect_within_noise(before, model, inputs);
  const Model decomposed = model.clone();
  EXPECT_EQ(run_pass(model, "fuse_gelu").applied, 2);
  EXPECT_THAT(op_types(model), ElementsAre("Gelu", "Gelu"));
  EXPECT_EQ(model.proto().graph().initializer_size(), 0);
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(DecomposeGelu, RefusesFloat16) {
  Model model = model_from_text(R"(<ir_version: 9, opset_import: ["" : 20]>
    g (float16[4] x) => (float16[4] y) { y = Gelu (x) })");
  const PassOutcome outcome = run_pass(model, "decompose_gelu");
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_THAT(first_reason(outcome), HasSubstr("'x' is float16"));
}

}  // namespace
}  // namespace tenonnx
