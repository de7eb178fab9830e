// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/fusion_test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DecomposeSilu, WithAndWithoutAlphaAndBack) {
  Model model = model_from_text(R"(<ir_version: 11, opset_import: ["" : 24]>
    g (float[2,16] x) => (float[2,16] y, float[2,16] z) {
      y = Swish (x)  z = Swish <alpha = 1.5> (x)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "decompose_silu").applied, 2);
  EXPECT_THAT(op_types(model), ElementsAre("Sigmoid", "Mul", "Mul", "Sigmoid", "Mul"));
  const TensorMap inputs = {{"x", ramp({2, 16})}};
  expect_within_noise(before, model, inputs);
  EXPECT_EQ(run_pass(model, "fuse_silu").applied, 2);
  EXPECT_THAT(op_types(model), ElementsAre("Swish", "Swish"));
  EXPECT_EQ(model.proto().graph().initializer_size(), 0);
  EXPECT_EQ(attribute_or(model.proto().graph().node(1), "alpha", 1.0F), 1.5F);
}

TEST(DecomposeSilu, RefusesFloat16) {
  Model model = model_from_text(R"(<ir_version: 11, opset_import: ["" : 24]>
    g (float16[4] x) => (float16[4] y) { y = Swish (x) })");
  EXPECT_THAT(first_reason(run_pass(model, "decompose_silu")), HasSubstr("'x' is float16"));
}

}  // namespace
}  // namespace tenonnx
