// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FuseSplit, SlicesThatFillAnAxisBecomeOneSplit) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,6] x) => (float[N,2] a, float[N,1] b, float[N,3] c)
      <int64[1] zero = {0}, int64[1] two = {2}, int64[1] three = {3}, int64[1] axis = {-1},
       int64[1] end = {9223372036854775807}, int64[1] minus = {-4}, int64[1] one = {1}> {
      c = Slice (x, three, end, axis, one)  a = Slice (x, zero, minus, axis)
      b = Slice (x, two, three, one)
    })");
  const Model before = model.clone();
  const PassOutcome outcome = run_pass(model, "fuse_split");
  EXPECT_EQ(outcome.applied, 1);
  EXPECT_EQ(outcome.sites[0].what, "3 Slices become one Split");
  EXPECT_THAT(op_types(model), ElementsAre("Split"));
  const TensorMap inputs = {{"x", ramp({2, 6})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(FuseSplit, SizesAreAnAttributeBeforeOpsetThirteen) {
  Model model = model_from_text(R"(<ir_version: 7, opset_import: ["" : 9]>
    g (float[5,2] x) => (float[4,2] y, float[1,2] b) {
      a = Slice <starts = [0], ends = [4]> (x)  b = Slice <starts = [-1], ends = [5], axes = [0]> (x)
      y = Relu (a)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "fuse_split").applied, 1);
  EXPECT_THAT(op_types(model), ElementsAre("Split", "Relu"));
  const TensorMap inputs = {{"x", ramp({5, 2})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(FuseSplit, GapsOverlapsStepsAndTwoAxesStay) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,4] x, float[4,4] z, float[4,4] v)
      => (float[2,4] a, float[1,4] b, float[2,4] c, float[4,2] d, float[2,4] e, float[2,4] f)
      <int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] i2 = {2}, int64[1] i3 = {3}, int64[1] i4 = {4}> {
      a = Slice (x, i0, i2, i0)  b = Slice (x, i3, i4, i0)
      c = Slice (z, i0, i2, i0)  d = Slice (z, i2, i4, i1)
      e = Slice (v, i0, i4, i0, i2)  f = Slice (v, i2, i4, i0)
    })");
  const PassOutcome outcome = run_pass(model, "fuse_split");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 2U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("a gap or overlap"));
}

}  // namespace
}  // namespace tenonnx
