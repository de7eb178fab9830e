// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/softmax_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::from(DType::kFloat32, std::move(shape), values);
}

// Values of a few bits, whose sums are exact.
TEST(SoftmaxSum, SumsAlongItsAxis) {
  const Tensor t = floats({2, 2, 2}, {0.5F, 0.25F, 0.5F, 0.5F, 0.25F, 0.5F, 0.75F, 0.5F});
  const auto middle = softmax_sum(t, 1);
  ASSERT_TRUE(middle.ok());
  EXPECT_EQ(middle->lanes, 4);
  EXPECT_EQ(middle->max_error, 0.25);  // 0.25 + 0.5
  EXPECT_EQ(middle->worst_lane, 1);
  EXPECT_EQ(softmax_sum(t, -1)->max_error, 0.25);
  EXPECT_EQ(softmax_sum(t, -1)->worst_lane, 0);
}

TEST(SoftmaxSum, ASumThatIsNoNumberIsTheWorst) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(softmax_sum(floats({2, 1}, {0, nan}), 1)->max_error,
            std::numeric_limits<double>::infinity());
}

// A third as float16 is 1365/4096 (0x3555); three of them are 4095/4096.
TEST(SoftmaxSum, BaselineIsTheRoundingOfTheExactResults) {
  const Tensor thirds = floats({3}, {1 / 3.0F, 1 / 3.0F, 1 / 3.0F});
  EXPECT_EQ(softmax_sum_baseline(thirds, 0, DType::kFloat16)->max_error, 0x1p-12);
  EXPECT_LT(softmax_sum_baseline(thirds, 0, DType::kFloat32)->max_error, 1e-7);
  EXPECT_GT(softmax_sum_baseline(thirds, 0, DType::kBFloat16)->max_error, 1e-3);
}

TEST(SoftmaxSum, RefusesWhatHasNoSum) {
  EXPECT_THAT(softmax_sum(floats({2}, {1, 0}), 1).status().message(), HasSubstr("axis 1"));
  EXPECT_THAT(softmax_sum(Tensor(DType::kInt32, {2}), 0).status().message(), HasSubstr("int32"));
}

}  // namespace
}  // namespace tenonnx
