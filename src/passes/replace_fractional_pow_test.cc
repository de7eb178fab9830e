// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ReplaceFractionalPow, RootsAndInverses) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[97] x) => (float[97] y, float[97] z) <float half = {0.5}, float[1] minus = {-1}> {
      y = Pow (x, half)  z = Pow (x, minus)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "replace_fractional_pow").applied, 2);
  EXPECT_THAT(op_types(model), ElementsAre("Sqrt", "Reciprocal"));
  Tensor x = ramp({97});
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.mutable_data<float>()[i] = x.data<float>()[i] * x.data<float>()[i] + 1e-3F;
  const TensorMap a = run_on_cpu(before, {{"x", x}}), b = run_on_cpu(model, {{"x", x}});
  for (const auto& [name, old] : a)
    for (std::int64_t i = 0; i < old.size(); ++i)
      // glibc states pow to 1 ulp (2^-23 of the value), the other side is rounded right.
      EXPECT_NEAR(old.data<float>()[i], b.at(name).data<float>()[i],
                  0x1p-23F * std::fabs(old.data<float>()[i]));
}

TEST(ReplaceFractionalPow, RefusesIntegersAndHigherRanks) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (int32[4] n, float[4] x) => (int32[4] a, float[1,4] b, float[4] c)
      <float half = {0.5}, float[1,1] wide = {0.5}, float two = {2}> {
      a = Pow (n, half)  b = Pow (x, wide)  c = Pow (x, two)
    })");
  const PassOutcome outcome = run_pass(model, "replace_fractional_pow");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 2U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("the base is int32"));
  EXPECT_THAT(outcome.skipped[1].reason, HasSubstr("higher rank"));
}

}  // namespace
}  // namespace tenonnx
