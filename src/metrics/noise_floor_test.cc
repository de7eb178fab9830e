// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/noise_floor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

Tensor floats(const std::vector<float>& values) {
  return Tensor::from(DType::kFloat32, {static_cast<std::int64_t>(values.size())}, values);
}

// In [1,2) float16 has steps of 2^-10 and bfloat16 of 2^-7.
TEST(StorageFloor, IsHalfAStepAtTheMiddle) {
  const Tensor y = floats({1, 1 + 0x1p-11F, 0});
  const auto f16 = storage_noise_floor(y, DType::kFloat16, "y as float16");
  ASSERT_TRUE(f16.ok());
  EXPECT_EQ(f16->max_abs, 0x1p-11);
  EXPECT_NEAR(f16->relative_l2, 0x1p-11 / std::sqrt(1 + std::pow(1 + 0x1p-11, 2)), 1e-18);
  const auto b16 = storage_noise_floor(floats({1 + 0x1p-8F}), DType::kBFloat16, "y as bfloat16");
  EXPECT_EQ(b16->max_abs, 0x1p-8);
}

TEST(StorageFloor, IsZeroWhereEveryValueCanBeStored) {
  const auto floor = storage_noise_floor(floats({0, 1, -2.5F, 65504}), DType::kFloat16, "y");
  EXPECT_EQ(floor->max_abs, 0);
  EXPECT_EQ(floor->relative_l2, 0);
  EXPECT_EQ(limit_from_floor(*floor, FloorFigure::kMaxAbs, 8).value, 0);
}

// A floor of Inf would let everything pass.
TEST(StorageFloor, OverflowIsCountedAndLeftOut) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto floor = storage_noise_floor(floats({inf, 1, 65520, -1e9F}), DType::kFloat16, "y");
  EXPECT_EQ(floor->max_abs, 0);
  EXPECT_EQ(floor->overflowed, 2);
  EXPECT_EQ(floor->first_overflowed_index, 2);
  const Tensor wide = Tensor::from<double>(DType::kFloat64, {1}, {1e300});
  EXPECT_EQ(storage_noise_floor(wide, DType::kBFloat16, "y")->overflowed, 1);
}

TEST(StorageFloor, RefusesOtherTypes) {
  EXPECT_THAT(storage_noise_floor(floats({1}), DType::kInt8, "y").status().message(),
              HasSubstr("int8"));
  EXPECT_THAT(
      storage_noise_floor(Tensor(DType::kInt64, {2}), DType::kFloat16, "y").status().message(),
      HasSubstr("int64 [2]"));
}

TEST(MeasuredFloor, IsTheErrorBetweenBoth) {
  const auto floor = measured_noise_floor(floats({3, 4}), floats({4, 3}), "two runs");
  ASSERT_TRUE(floor.ok());
  EXPECT_EQ(floor->max_abs, 1);
  EXPECT_NEAR(floor->relative_l2, std::sqrt(2.0) / 5, 1e-15);
  EXPECT_FALSE(measured_noise_floor(floats({1}), floats({1, 2}), "x").ok());
}

TEST(Limit, IsFactorTimesFloorAndSaysSo) {
  const auto floor = measured_noise_floor(floats({3, 4}), floats({3.5F, 4}), "two runs");
  const Limit limit = limit_from_floor(*floor, FloorFigure::kMaxAbs, 8);
  EXPECT_EQ(limit.value, 4);
  EXPECT_EQ(limit.origin, "8 x the noise floor 0.5 (max abs) of two runs");
  EXPECT_THAT(limit_from_floor(*floor, FloorFigure::kRelativeL2, 2.5).origin,
              HasSubstr("2.5 x the noise floor 0.1 (relative L2)"));
}

TEST(Limit, OfAnInfiniteFloorPassesNothing) {
  const auto floor = measured_noise_floor(floats({0, 0}), floats({0, 1}), "a broken pair");
  const Limit limit = limit_from_floor(*floor, FloorFigure::kRelativeL2, 8);
  EXPECT_EQ(make_check("c", 0, Comparison::kAtMost, limit).verdict, Verdict::kInconclusive);
}

TEST(JoinWorst, TakesTheLargerOfEachFigure) {
  const NoiseFloor joined = join_worst({0.5, 0.1, "images"}, {0.2, 0.3, "other", 1, 7});
  EXPECT_EQ(joined.max_abs, 0.5);
  EXPECT_EQ(joined.relative_l2, 0.3);
  EXPECT_EQ(joined.origin, "images");
  EXPECT_EQ(joined.overflowed, 1);
  EXPECT_EQ(joined.first_overflowed_index, 7);
}

}  // namespace
}  // namespace tenonnx
