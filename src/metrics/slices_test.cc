// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/slices.h"

#include <gtest/gtest.h>

#include <vector>

namespace tenonnx {
namespace {

Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::from(DType::kFloat32, std::move(shape), values);
}

// [1,3,4]: two rows of pixels and one of scores, as the output [1,84,8400] of a one-stage detector.
TEST(FindMixed, TellsBoxesFromScores) {
  const Tensor t = floats({1, 3, 4}, {10, 600, 20, 30, 40, 300, 20, 10, 0.5F, 0.9F, 0, 0.1F});
  const auto found = find_mixed(t);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->axis, 1);
  ASSERT_EQ(found->groups.size(), 2U);
  EXPECT_EQ(found->groups[0].end, 2);
  EXPECT_EQ(found->groups[0].magnitude, 600);
  EXPECT_EQ(found->groups[1].begin, 2);
  EXPECT_EQ(found->groups[1].end, 3);
}

TEST(FindMixed, LeavesTensorsOfOneKindAlone) {
  EXPECT_FALSE(find_mixed(floats({2, 2}, {1, 2, 30, 40})).has_value());
  EXPECT_FALSE(find_mixed(floats({2, 2}, {0, 0, 30, 40})).has_value());  // zero is of any kind
  EXPECT_FALSE(find_mixed(Tensor(DType::kInt64, {2, 2})).has_value());
  // Channels of features, all over the place: no kinds.
  EXPECT_FALSE(find_mixed(floats({6, 1}, {1, 1000, 1, 1000, 1, 1000})).has_value());
}

TEST(SlicesOf, CopiesARangeAlongAnAxis) {
  const Tensor t = floats({2, 3}, {0, 1, 2, 3, 4, 5});
  const auto right = slices_of(t, 1, 1, 3);
  ASSERT_TRUE(right.ok());
  EXPECT_EQ(right->shape(), (Shape{2, 2}));
  EXPECT_EQ(std::vector<float>(right->data<float>(), right->data<float>() + 4),
            (std::vector<float>{1, 2, 4, 5}));
  EXPECT_FALSE(slices_of(t, 1, 2, 4).ok());
  EXPECT_FALSE(slices_of(t, 2, 0, 1).ok());
}

}  // namespace
}  // namespace tenonnx
