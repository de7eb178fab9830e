// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "passes/fusion_test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 30, -30 and 100: softplus must not overflow, nor the small gate be lost.
TEST(DecomposeMish, ComputesTheSame) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 18]>
    g (float[2,16] x) => (float[2,16] y) { y = Mish (x) })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "decompose_mish").applied, 1);
  EXPECT_THAT(op_types(model), ElementsAre("Softplus", "Tanh", "Mul"));
  Tensor x = ramp({2, 16});
  for (int i = 0; i < 3; ++i) x.mutable_data<float>()[i] = std::array{30.0F, -30.0F, 100.0F}[i];
  expect_within_noise(before, model, {{"x", x}});
}

TEST(DecomposeMish, RefusesFloat16) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 18]>
    g (float16[4] x) => (float16[4] y) { y = Mish (x) })");
  EXPECT_THAT(first_reason(run_pass(model, "decompose_mish")), HasSubstr("'x' is float16"));
}

}  // namespace
}  // namespace tenonnx
