// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/signal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor floats(const std::vector<float>& values) {
  return Tensor::from(DType::kFloat32, {static_cast<std::int64_t>(values.size())}, values);
}

double sqnr(const std::vector<float>& r, const std::vector<float>& c) {
  const auto error = compare_tensors(floats(r), floats(c));
  return sqnr_db(*error).value_or(-1);
}

// Signal 3^2 + 4^2 = 25, noise 0.5^2 = 0.25: a factor of 100, 20 dB. Sums of small integers and
// quarters are exact; log10 is within an ulp.
TEST(Sqnr, IsSignalOverNoise) {
  EXPECT_NEAR(sqnr({3, 4}, {3, 4.5F}), 20, 1e-12);
  EXPECT_EQ(sqnr({3, 4}, {3, 4}), std::numeric_limits<double>::infinity());
  // Noise alone: the other way round it would be +Inf.
  EXPECT_EQ(sqnr({0, 0}, {1, 0}), -std::numeric_limits<double>::infinity());
}

// Mean square error (1 + 0) / 2 over a peak of 10: 10 log10(100 / 0.5).
TEST(Psnr, IsOverTheDeclaredPeak) {
  EXPECT_NEAR(*psnr_db(floats({3, 4}), floats({4, 4}), 10), 10 * std::log10(200.0), 1e-12);
  EXPECT_EQ(*psnr_db(floats({3}), floats({3}), 10), std::numeric_limits<double>::infinity());
  EXPECT_NEAR(*psnr_db(floats({3, kInf}), floats({4, kInf}), 10), 20, 1e-12);
  EXPECT_THAT(psnr_db(floats({3}), floats({3}), 0).status().message(), HasSubstr("above 0; got 0"));
}

TEST(MaxUlp, CountsStepsOfTheFormat) {
  const float up = std::nextafter(1.0F, 2.0F);
  EXPECT_EQ(*max_ulp(floats({1, 5}), floats({up, 5}), DType::kFloat32), 1);
  // From below 1 to above: one step on each side, though they differ in size.
  EXPECT_EQ(*max_ulp(floats({std::nextafter(1.0F, 0.0F)}), floats({up}), DType::kFloat32), 2);
  EXPECT_EQ(*max_ulp(floats({0.0F}), floats({-0.0F}), DType::kFloat32), 0);
  // Across zero: one subnormal step each way.
  EXPECT_EQ(*max_ulp(floats({1e-45F}), floats({-1e-45F}), DType::kFloat32), 2);
  // In [1,2) a step of float16 is 2^-10; of bfloat16 2^-7.
  EXPECT_EQ(*max_ulp(floats({1}), floats({1 + 3 * 0x1p-10F}), DType::kFloat16), 3);
  EXPECT_EQ(*max_ulp(floats({1}), floats({1 + 2 * 0x1p-7F}), DType::kBFloat16), 2);
  EXPECT_EQ(*max_ulp(floats({kInf}), floats({1}), DType::kFloat32), -1);
  const Tensor a = Tensor::from<double>(DType::kFloat64, {1}, {-1.7e308});
  const Tensor b = Tensor::from<double>(DType::kFloat64, {1}, {1.7e308});
  EXPECT_EQ(*max_ulp(a, b, DType::kFloat64), INT64_MAX);
  EXPECT_FALSE(max_ulp(Tensor(DType::kInt64, {1}), Tensor(DType::kInt64, {1}), DType::kFloat32)
                   ->has_value());
}

TEST(CountBeyond, CountsLargeErrorsAndLostNumbers) {
  EXPECT_EQ(*count_beyond(floats({1, 2, 3, kInf}), floats({1.5F, 2.25F, kInf, kInf}), 0.25), 2);
  const Tensor a = Tensor::from<std::int64_t>(DType::kInt64, {3}, {1, 2, 3});
  const Tensor b = Tensor::from<std::int64_t>(DType::kInt64, {3}, {1, 3, 3});
  EXPECT_EQ(*count_beyond(a, b, 0), 1);
}

TEST(CountSaturated, TellsClippedValuesFromKeptOnesAndMasks) {
  const std::vector<double> masks = {1e9};
  const auto found =
      count_saturated(floats({1, 90000, -70000, -1e9F, 200000}),
                      floats({1, 89984, -65504, -65504, 131008}), 65504, 131008, masks);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->beyond, 3);     // 90000, -70000, 200000; the mask is none
  EXPECT_EQ(found->saturated, 2);  // 89984 is 90000, rounded
  EXPECT_EQ(found->first_index, 1);
  EXPECT_EQ(found->max_abs, 200000);
  // The candidate holds the number itself: nothing was clipped.
  const auto kept = count_saturated(floats({90000}), floats({90000}), 65504, 131008, {});
  EXPECT_EQ(kept->beyond, 1);
  EXPECT_EQ(kept->saturated, 0);
}

TEST(ChangedNonFinite, TellsSaturationFromLoss) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto of = [](std::vector<float> values) {
    const Shape shape = {static_cast<std::int64_t>(values.size())};
    return Tensor::from<float>(DType::kFloat32, shape, values);
  };
  const Tensor reference = of({1, inf, inf, -inf, -inf, inf, nan, nan});
  const Tensor candidate = of({2, inf, 65504, -131008, 65504, nan, nan, 5});
  const auto half = changed_non_finite(reference, candidate, 65504);
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(half->saturated, 2);
  EXPECT_EQ(half->lost, 3);
  EXPECT_EQ(half->first_lost_index, 4);
  EXPECT_EQ(changed_non_finite(reference, candidate, inf)->lost, 5);
  EXPECT_FALSE(changed_non_finite(reference, of({1}), 65504).ok());
}

}  // namespace
}  // namespace tenonnx
