// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/fusion_test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Both ends of the ramp, where the gate is 0 and 1, are inside -8 to 8.
TEST(DecomposeHardSwish, ComputesTheSame) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,48] x) => (float[2,48] y) { y = HardSwish (x) })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "decompose_hard_swish").applied, 1);
  EXPECT_THAT(op_types(model), ElementsAre("HardSigmoid", "Mul"));
  Tensor x = ramp({2, 48});
  for (std::int64_t i = 0; i < x.size(); ++i) x.mutable_data<float>()[i] *= 8;
  expect_within_noise(before, model, {{"x", x}});
}

TEST(DecomposeHardSwish, RefusesFloat16) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float16[4] x) => (float16[4] y) { y = HardSwish (x) })");
  EXPECT_THAT(first_reason(run_pass(model, "decompose_hard_swish")), HasSubstr("'x' is float16"));
}

}  // namespace
}  // namespace tenonnx
