// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_inputs.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

TensorMap captured() {
  return {{"f", Tensor::from<float>(DType::kFloat32, {4}, {-1, 0.5, 2, 3})},
          {"p", Tensor::from<float>(DType::kFloat32, {4}, {0.5, 1, 2, 3})},
          {"i", Tensor::from<std::int64_t>(DType::kInt64, {2}, {7, -1})}};
}

TEST(MakeInputs, StayWithinWhatTheCaseSays) {
  for (const MadeCase made : all_made_cases()) {
    const TensorMap inputs = make_inputs(made, captured(), {}, 1);
    EXPECT_EQ(inputs.at("i").data<std::int64_t>()[0], 7) << to_string(made);
    const float* f = inputs.at("f").data<float>();
    for (int i = 0; i < 4; ++i) {
      const double bound = made == MadeCase::kWide ? 16 * 3 * 3.5 : 3;
      EXPECT_LE(std::fabs(f[i]), bound) << to_string(made);
      if (made == MadeCase::kEnds) EXPECT_TRUE(f[i] == -1 || f[i] == 3);
      if (made == MadeCase::kSmall) EXPECT_LE(std::fabs(f[i]), 3e-6);
      if (made == MadeCase::kZeros) EXPECT_EQ(std::bit_cast<std::uint32_t>(f[i]), 0U);
      if (made == MadeCase::kNegativeZeros)
        EXPECT_EQ(std::bit_cast<std::uint32_t>(f[i]), 0x80000000U);
      // What is never 0 (a divisor, an epsilon) is not made 0.
      if (made == MadeCase::kZeros) EXPECT_EQ(inputs.at("p").data<float>()[i], 0.5F);
    }
  }
}

TEST(MakeInputs, AreTheSameEachTimeAndKeepWhatIsKept) {
  const TensorMap a = make_inputs(MadeCase::kNormal, captured(), {}, 1);
  const TensorMap b = make_inputs(MadeCase::kNormal, captured(), {}, 1);
  const TensorMap c = make_inputs(MadeCase::kNormal, captured(), {}, 2);
  EXPECT_EQ(a.at("f").data<float>()[0], b.at("f").data<float>()[0]);
  EXPECT_NE(a.at("f").data<float>()[0], c.at("f").data<float>()[0]);
  const TensorMap kept = make_inputs(MadeCase::kWide, captured(), {"f"}, 1);
  EXPECT_EQ(kept.at("f").data<float>()[3], 3.0F);
}

TEST(Disturb, MovesByOneUnitAtMostAndLeavesZeroAndInf) {
  std::vector<float> values(300, 1.1F);
  values[0] = 0;
  values[1] = INFINITY;
  values[2] = std::numeric_limits<float>::max();
  const Tensor tensor = Tensor::from<float>(DType::kFloat32, {300}, values);
  const Tensor moved = disturb(tensor, 3);
  EXPECT_EQ(moved.data<float>()[0], 0.0F);
  EXPECT_EQ(moved.data<float>()[1], INFINITY);
  EXPECT_TRUE(std::isfinite(moved.data<float>()[2]));
  std::set<int> steps;
  for (int i = 3; i < 300; ++i)
    steps.insert(static_cast<int>(std::bit_cast<std::uint32_t>(moved.data<float>()[i]) -
                                  std::bit_cast<std::uint32_t>(1.1F)));
  EXPECT_EQ(steps, (std::set<int>{-1, 0, 1}));
  EXPECT_EQ(tensor.data<float>()[5], 1.1F);  // a copy
}

TEST(DisturbConstants, LeavesShortOnesAndIntegers) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y)
    <float[8] w = {2, 0.5, 3, -1.5, 0, 1, 64, 0.25}, float[4] v = {0.1, 0.2, 0.3, 0.7},
     int64[1] s = {4}> {
      a = Add (x, v) b = Reshape (a, s) c = ReduceSum (w) y = Mul (b, c) })");
  ASSERT_TRUE(disturb_constants(model, 1).ok());
  const auto w = model.initializer("w"), v = model.initializer("v"), s = model.initializer("s");
  ASSERT_TRUE(w.ok() && v.ok() && s.ok());
  EXPECT_EQ(w->data<float>()[2], 3.0F);
  EXPECT_EQ(s->data<std::int64_t>()[0], 4);
  int moved = 0;
  const float was[] = {0.1F, 0.2F, 0.3F, 0.7F};
  for (int i = 0; i < 4; ++i) moved += v->data<float>()[i] != was[i] ? 1 : 0;
  EXPECT_GT(moved, 0);
}

}  // namespace
}  // namespace tenonnx
