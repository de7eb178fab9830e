// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/fusion_test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DecomposeRmsNormalization, ThereAndBack) {
  for (const std::string attributes : {"", "<epsilon = 0.001>", "<axis = 2>"}) {
    Model model = model_from_text(fmt::format(
        "<ir_version: 10, opset_import: [\"\" : 23]> g (float[2,3,4] x) => (float[2,3,4] y) "
        "<float[4] s = {{1, -2, 0.5, 3}}> {{ y = RMSNormalization {} (x, s) }}",
        attributes));
    const Model before = model.clone();
    EXPECT_EQ(run_pass(model, "decompose_rms_normalization").applied, 1);
    EXPECT_THAT(op_types(model), ElementsAre("Mul", "ReduceMean", "Add", "Sqrt", "Div", "Mul"));
    const TensorMap inputs = {{"x", ramp({2, 3, 4})}};
    expect_within_noise(before, model, inputs);
    EXPECT_EQ(run_pass(model, "fuse_rms_normalization").applied, 1);
    ASSERT_THAT(op_types(model), ElementsAre("RMSNormalization"));
    expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
  }
}

TEST(DecomposeRmsNormalization, RefusesFloat16) {
  Model model = model_from_text(R"(<ir_version: 10, opset_import: ["" : 23]>
    g (float16[2,4] x, float16[4] s) => (float16[2,4] y) { y = RMSNormalization (x, s) })");
  EXPECT_THAT(first_reason(run_pass(model, "decompose_rms_normalization")),
              HasSubstr("'x' is float16"));
}

}  // namespace
}  // namespace tenonnx
