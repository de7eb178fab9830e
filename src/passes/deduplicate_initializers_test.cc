// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

TEST(DeduplicateInitializers, OneOfThreeCopiesStays) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x, bool c) => (float[2] y)
      <float[2] w1 = {1, 2}, float[2] w2 = {1, 2}, float[2] w3 = {1, 2}> {
      a = Add (x, w1)  b = Mul (a, w2)
      y = If (c) <then_branch = t () => (float[2] p) { p = Sub (b, w3) },
                  else_branch = e () => (float[2] q) { q = Add (b, w3) }>
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "deduplicate_initializers");
  EXPECT_EQ(outcome.applied, 2);
  EXPECT_EQ(model.proto().graph().initializer_size(), 1);
  EXPECT_THAT(outcome.sites[0].what, HasSubstr("'w2' is a copy"));
  for (const std::uint8_t c : {0, 1}) {
    const TensorMap inputs = {{"x", ramp({2})},
                              {"c", Tensor::from<std::uint8_t>(DType::kBool, {}, {c})}};
    expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
  }
  EXPECT_EQ(run_pass(model, "deduplicate_initializers").applied, 0);
}

TEST(DeduplicateInitializers, DtypeShapeAndSignOfZeroCount) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y)
      <float zero = {0}, float minus = {-0.0}, float[1] one_zero = {0}, int32 int_zero = {0}> {
      a = Add (x, zero)  b = Add (a, minus)  c = Add (b, one_zero)  d = Cast <to = 1> (int_zero)
      y = Add (c, d)
    })");
  EXPECT_EQ(run_pass(model, "deduplicate_initializers").applied, 0);
  EXPECT_EQ(model.proto().graph().initializer_size(), 4);
}

TEST(DeduplicateInitializers, OverridableOnesAndOutputsStay) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x, float[2] w1) => (float[2] y, float[2] w3)
      <float[2] w1 = {1, 2}, float[2] w2 = {1, 2}, float[2] w3 = {1, 2}> {
      a = Add (x, w1)  b = Mul (a, w2)  y = Sub (b, w3)
    })");
  const PassOutcome outcome = run_pass(model, "deduplicate_initializers");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("'w3' holds what 'w2' holds"));
}

}  // namespace
}  // namespace tenonnx
