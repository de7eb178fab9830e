// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/error_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "metrics/elements.h"

namespace tenonnx {
namespace {

Tensor tensor(const std::vector<float>& values) {
  Tensor made(DType::kFloat32, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), static_cast<float*>(made.mutable_raw()));
  return made;
}

TEST(ErrorProfile, ADeviceThatRoundsOnceHasARatioOfOne) {
  std::vector<float> exact, rounded;
  for (int i = 1; i < 500; ++i) {
    exact.push_back(std::sin(static_cast<float>(i)));
    rounded.push_back(static_cast<float>(stored(exact.back(), DType::kFloat16)));
  }
  ErrorProfile profile(DType::kFloat16);
  ASSERT_TRUE(profile.add(tensor(exact), tensor(rounded), {}).ok());
  EXPECT_DOUBLE_EQ(profile.ratio(), 1);
  EXPECT_EQ(profile.max_abs(), profile.rounding_max());
  // Never more than half a spacing.
  EXPECT_EQ(profile.classes()[0] + profile.classes()[1], profile.count());
  EXPECT_TRUE(profile.ranges().empty());
}

TEST(ErrorProfile, BiasLossAndDistribution) {
  ErrorProfile profile(DType::kFloat16);
  const float inf = INFINITY;
  // Spacing at 1 is 2^-10, at 3 2^-9.
  ASSERT_TRUE(profile
                  .add(tensor({1, 1, 3, inf, 2}),
                       tensor({1 + 0x1p-10F, 1 + 0x1p-8F, 3 + 0x1p-9F, 0, inf}), {})
                  .ok());
  EXPECT_EQ(profile.count(), 3);
  EXPECT_EQ(profile.lost(), 1);  // 2 became Inf; Inf that became 0 is no loss of a number
  EXPECT_THAT(profile.classes(), testing::ElementsAre(0, 0, 2, 0, 1, 0, 0));
  EXPECT_DOUBLE_EQ(profile.bias(), (0x1p-10 + 0x1p-8 + 0x1p-9) / 3);
  EXPECT_TRUE(std::isinf(profile.ratio()));  // 1 and 3 are stored exactly
}

TEST(ErrorProfile, ByInput) {
  ErrorProfile profile(DType::kFloat16);
  ASSERT_TRUE(profile
                  .add(tensor({-1, -0.5F, 0.5F, 0.9F, 1}), tensor({-1, -0.5F, 0.6F, 1, 1}),
                       tensor({-20, -0.5F, 0.5F, 3, 20}))
                  .ok());
  const auto ranges = profile.ranges();
  ASSERT_EQ(ranges.size(), 5U);
  EXPECT_EQ(ranges[0].from, -100);
  EXPECT_EQ(ranges[2].from, 0.1);
  EXPECT_NEAR(ranges[2].max_abs, 0.1, 1e-6);
  EXPECT_NEAR(ranges[2].max_relative, 0.2, 1e-6);
  EXPECT_EQ(ranges[4].max_abs, 0);
  EXPECT_EQ(profile.reference_settles(), 3);    // 0.9 at 3 is not yet 1
  EXPECT_EQ(profile.candidate_settles(), 0.5);  // the device is at 1 from 3 on
}

TEST(ErrorProfile, Spacing) {
  EXPECT_EQ(spacing(1, DType::kFloat16), 0x1p-10);
  EXPECT_EQ(spacing(-1.9, DType::kFloat16), 0x1p-10);
  EXPECT_EQ(spacing(0, DType::kFloat16), 0x1p-24);
  EXPECT_EQ(spacing(1, DType::kBFloat16), 0x1p-7);
  EXPECT_EQ(spacing(1, DType::kFloat32), 0x1p-23);
}

TEST(ErrorProfile, Errors) {
  ErrorProfile profile(DType::kFloat16);
  EXPECT_THAT(profile.add(tensor({1, 2}), tensor({1}), {}).message(),
              testing::HasSubstr("the reference's tensor is [2], the candidate's [1]"));
}

}  // namespace
}  // namespace tenonnx
