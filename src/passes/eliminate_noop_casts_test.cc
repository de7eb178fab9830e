// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ONNX's type numbers: float 1, uint8 2, int8 3, int32 6, int64 7, float16 10, double 11.
TEST(EliminateNoopCasts, ACastToItsOwnDtypeGoes) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N] x) => (float[N] y) {
      a = Cast <to = 1> (x)  b = Neg (a)  c = CastLike (b, x)  y = Cast <to = 1> (c)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "eliminate_noop_casts");
  EXPECT_EQ(outcome.applied, 3);
  EXPECT_THAT(op_types(model), ElementsAre("Neg"));
  const TensorMap inputs = {{"x", ramp({5})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateNoopCasts, AWayThroughAWiderDtypeIsCutShort) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, int32[4] i, bool[4] b) => (float[4] y, int32[4] j, float[4] f) {
      x64 = Cast <to = 11> (x)  x32 = Cast <to = 1> (x64)  y = Neg (x32)
      i64 = Cast <to = 7> (i)   i32 = Cast <to = 6> (i64)  j = Neg (i32)
      b32 = Cast <to = 6> (b)   f = Cast <to = 1> (b32)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "eliminate_noop_casts");
  EXPECT_THAT(op_types(model), ElementsAre("Neg", "Neg", "Cast"));
  EXPECT_EQ(outcome.applied, 5);  // two casts redirected and then no-ops, one redirected
  TensorMap inputs = {{"x", ramp({4})}};
  inputs["i"] = Tensor::from<std::int32_t>(DType::kInt32, {4}, {-5, 0, 2147483647, 7});
  inputs["b"] = Tensor::from<std::uint8_t>(DType::kBool, {4}, {1, 0, 0, 1});
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(EliminateNoopCasts, AWayThroughANarrowerDtypeStays) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, int64[4] i, int8[4] s) => (float[4] y, int64[4] j, uint8[4] u) {
      h = Cast <to = 10> (x)   y = Cast <to = 1> (h)
      f = Cast <to = 1> (i)    j = Cast <to = 7> (f)
      sf = Cast <to = 1> (s)   u = Cast <to = 2> (sf)
    })");
  const PassOutcome outcome = run_pass(model, "eliminate_noop_casts");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 3U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("float32 to float16, may lose"));
}

TEST(EliminateNoopCasts, BetweenAnInputAndAnOutputItStays) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y) { y = Cast <to = 1> (x) })");
  const PassOutcome outcome = run_pass(model, "eliminate_noop_casts");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("keep their own names"));
}

}  // namespace
}  // namespace tenonnx
