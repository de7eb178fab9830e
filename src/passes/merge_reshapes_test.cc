// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(MergeReshapes, AChainBecomesOneReshape) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,1,6] x) => (float[3,4] y) <int64[1] one = {1}, int64[3] mid = {4, 3, 1},
                                          int64[2] end = {3, 4}> {
      a = Squeeze (x, one)  b = Unsqueeze (a, one)  c = Reshape (b, mid)  d = Flatten (c)
      y = Reshape (d, end)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "merge_reshapes").applied, 4);
  EXPECT_THAT(op_types(model), ElementsAre("Reshape"));
  const TensorMap inputs = {{"x", ramp({2, 1, 6})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(MergeReshapes, OneDynamicDimensionIsCarriedAlong) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,2,3] x) => (float[N,3,2] y) <int64[2] flat = {-1, 6}, int64[3] end = {-1, 3, 2}> {
      a = Reshape (x, flat)  y = Reshape (a, end)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "merge_reshapes").applied, 1);
  for (const std::int64_t n : {1, 4}) {
    const TensorMap inputs = {{"x", ramp({n, 2, 3})}};
    expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
  }
}

TEST(MergeReshapes, TwoBranchesOrNone) {
  // Both uses reshape: the first goes. One use computes: it would stay, nothing is gained.
  for (const bool computes : {false, true}) {
    Model model = model_from_text(
        std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
          g (float[2,6] x) => (float[3,4] y, float[12] z) <int64[2] mid = {4, 3},
              int64[2] end = {3, 4}, int64[1] flat = {12}> {
            a = Reshape (x, mid)  y = Reshape (a, end)  )") +
        (computes ? "b = Relu (a)  z = Reshape (b, flat) }" : "z = Reshape (a, flat) }"));
    const Model before = model.clone();
    EXPECT_EQ(run_pass(model, "merge_reshapes").applied, computes ? 0 : 2);
    const TensorMap inputs = {{"x", ramp({2, 6})}};
    expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
  }
}

TEST(MergeReshapes, RefusesTwoUnknownDimensionsAndKeepsOutputs) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,M] x, float[6] v) => (float[N,M,1,1] y, float[2,3] z, float[3,2] w)
      <int64[1] two = {2}, int64[2] s = {2, 3}, int64[2] t = {3, 2}> {
      a = Unsqueeze (x, two)  y = Unsqueeze (a, two)  z = Reshape (v, s)  w = Reshape (z, t)
    })");
  const PassOutcome outcome = run_pass(model, "merge_reshapes");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("known too little"));
}

}  // namespace
}  // namespace tenonnx
