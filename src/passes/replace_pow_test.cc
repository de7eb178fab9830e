// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ordinary values, and all that is special: zeros, subnormals, overflow, infinities, NaN.
Tensor with_special_values() {
  Tensor t = ramp({4, 32});
  const float inf = std::numeric_limits<float>::infinity();
  const float values[] = {0.0F,       -0.0F, 1e-42F,
                          -1e-30F,    3e19F, -3e38F,
                          inf,        -inf,  std::numeric_limits<float>::quiet_NaN(),
                          1.0000001F, -7.3F};
  std::copy(std::begin(values), std::end(values), t.mutable_data<float>());
  return t;
}

TEST(ReplacePow, SquareAndCubeToTheBit) {
  for (const char* exponent :
       {"float e = {2}", "float[1] e = {3}", "int64 e = {2}", "int32 e = {3}"}) {
    Model model = model_from_text(std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[4,32] x) => (float[4,32] y) <)") +
                                  exponent + "> { y = Pow (x, e) }");
    const Model before = model.clone();
    EXPECT_EQ(run_pass(model, "replace_pow").applied, 1);
    EXPECT_EQ(op_counts(model)["Pow"], 0);
    const TensorMap inputs = {{"x", with_special_values()}};
    expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
  }
}

TEST(ReplacePow, TheFirstPowerGoes) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N] x) => (float[N] y) <float one = {1}> { a = Pow (x, one)  y = Neg (a) })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "replace_pow").applied, 1);
  EXPECT_THAT(op_types(model), ElementsAre("Neg"));
  const TensorMap inputs = {{"x", ramp({5})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(ReplacePow, RefusesOtherDtypesRanksAndExponents) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (int32[4] n, float[4] x, float[4] e) => (int32[4] a, float[1,4] b, float[4] c, float[4] d, float[4] f)
      <int32 two = {2}, float[1,1] wide = {2}, float half = {0.5}, float[4] many = {2, 2, 2, 2}> {
      a = Pow (n, two)  b = Pow (x, wide)  c = Pow (x, half)  d = Pow (x, e)  f = Pow (x, many)
    })");
  const PassOutcome outcome = run_pass(model, "replace_pow");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 2U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("powers of int32"));
  EXPECT_THAT(outcome.skipped[1].reason, HasSubstr("higher rank"));
}

}  // namespace
}  // namespace tenonnx
