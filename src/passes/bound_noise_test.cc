// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/bound_noise.h"

#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

constexpr const char* kGraph = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[N,64] x, int64[4] i) => (float[N,64] y, int64[4] j) {
    h = Neg (x) y = Neg (h) k = Neg (i) j = Neg (k)
  })";

// 192 elements, each `bound` up or down.
void expect_fair(const Tensor& y, float bound) {
  ASSERT_EQ(y.size(), 192);
  int up = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(std::abs(y.data<float>()[i]), bound) << i;
    up += y.data<float>()[i] > 0;
  }
  // 192 fair draws: 6 deviations of 7.
  EXPECT_GT(up, 96 - 42);
  EXPECT_LT(up, 96 + 42);
}

TEST(BoundNoise, MovesEveryElementByItsBound) {
  Model model = model_from_text(kGraph);
  const TensorMap inputs = {{"x", Tensor(DType::kFloat32, {3, 64})},
                            {"i", Tensor(DType::kInt64, {4})}};
  const auto moved = add_bound_noise(model, {{"h", 0.25}, {"k", 3}, {"nowhere", 1}}, 1);
  ASSERT_TRUE(moved.ok()) << moved.status().message();
  EXPECT_EQ(*moved, 1);  // k is of integers, nowhere is nowhere; x has no known length
  expect_fair(run_on_cpu(model, inputs).at("y"), 0.25F);
}

// ONNX Runtime 1.29 has no random operator of opset 22; where the shape is known none is needed.
TEST(BoundNoise, NeedsNoRandomOperatorWhereTheShapeIsKnown) {
  Model model = model_from_text(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[3,64] x) => (float[3,64] y) { h = Neg (x) y = Neg (h) })");
  ASSERT_EQ(*add_bound_noise(model, {{"h", 0.25}}, 1), 1);
  expect_fair(run_on_cpu(model, {{"x", Tensor(DType::kFloat32, {3, 64})}}).at("y"), 0.25F);
}

TEST(BoundNoise, OtherTensorsAreLeft) {
  Model model = model_from_text(kGraph);
  const auto before = op_types(model);
  EXPECT_EQ(*add_bound_noise(model, {}, 1), 0);
  EXPECT_EQ(*add_bound_noise(model, {{"x", 1}}, 1), 0);  // no node makes it
  EXPECT_EQ(op_types(model), before);
}

}  // namespace
}  // namespace tenonnx
