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

// Sums of 6 products of values below 1 and a bias below 4: 7 roundings of at most 2^-22 each.
void expect_close(const TensorMap& a, const TensorMap& b) {
  for (const auto& [name, old] : a) {
    ASSERT_EQ(old.shape(), b.at(name).shape());
    for (std::int64_t i = 0; i < old.size(); ++i)
      ASSERT_NEAR(old.data<float>()[i], b.at(name).data<float>()[i], 7 * 0x1p-22);
  }
}

TEST(FuseGemm, OfRankTwoWithABiasOfAnyForm) {
  for (const char* bias : {"float[2] b = {1, -3}", "float b = {0.5}", "float[1,2] b = {2, 1}"}) {
    for (const char* add : {"Add (p, b)", "Add (b, p)"}) {
      Model model = model_from_text(std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
        g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, )") +
                                    bias + "> { p = MatMul (x, w)  y = " + add + " }");
      const Model before = model.clone();
      EXPECT_EQ(run_pass(model, "fuse_gemm").applied, 1);
      EXPECT_THAT(op_types(model), ElementsAre("Gemm"));
      const TensorMap inputs = {{"x", ramp({4, 3})}};
      expect_close(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
    }
  }
}

TEST(FuseGemm, BetweenReshapesNothingIsAdded) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,2,6] x) => (float[8,2] y)
      <float[3,2] w = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, float[2] b = {1, -3},
       int64[3] in = {2, 4, 3}, int64[2] out = {8, 2}> {
      r = Reshape (x, in)  p = MatMul (r, w)  s = Add (p, b)  y = Reshape (s, out)
    })");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "fuse_gemm").applied, 1);
  run_pass(model, "merge_reshapes");
  run_pass(model, "eliminate_noop_reshapes");
  EXPECT_THAT(op_types(model), ElementsAre("Reshape", "Gemm"));
  const TensorMap inputs = {{"x", ramp({2, 2, 6})}};
  expect_close(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(FuseGemm, HigherRanksWideBiasesUsedProductsAndIntegersStay) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4,3] x, float[1,3] z, int32[4,3] n, float[N,2] c)
      => (float[2,4,2] y, float[5,2] v, float[4,2] q, int32[4,2] m, float[4,2] d, float[M,2] e)
      <float[3,2] w = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, float[2] b = {1, -3},
       float[5,2] wide = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, int32[3,2] k = {1, 2, 3, 4, 5, 6},
       int32[2] j = {1, 2}> {
      p = MatMul (x, w)  y = Add (p, b)
      u = MatMul (z, w)  v = Add (u, wide)
      f = Squeeze (z)  o = MatMul (n, k)  m = Add (o, j)
      s = Cast <to = 1> (n)  q = MatMul (s, w)  d = Add (q, b)
      h = MatMul (z, w)  e = Add (h, c)
    })");
  const PassOutcome outcome = run_pass(model, "fuse_gemm");
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 3U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("'wide' does not broadcast"));
  EXPECT_THAT(outcome.skipped[1].reason, HasSubstr("Gemm of int32"));
  EXPECT_THAT(outcome.skipped[2].reason, HasSubstr("'c' does not broadcast"));
}

}  // namespace
}  // namespace tenonnx
