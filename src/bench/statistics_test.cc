// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "bench/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace tenonnx {
namespace {

std::vector<double> counted(int n) {
  std::vector<double> samples(static_cast<std::size_t>(n));
  std::iota(samples.begin(), samples.end(), 1.0);
  return samples;
}

TEST(StatisticsTest, HandMadeSamples) {
  // 1..21 in disorder: position of P50 is 0.50 * 20 = 10 (value 11), of P95 0.95 * 20 = 19 (20).
  auto samples = counted(21);
  std::swap(samples[0], samples[20]);
  std::swap(samples[3], samples[10]);
  const LatencySummary summary = summarize(samples);
  EXPECT_EQ(summary.runs, 21u);
  EXPECT_EQ(summary.min, 1);
  EXPECT_DOUBLE_EQ(summary.p50.estimate, 11);
  EXPECT_DOUBLE_EQ(summary.p95.estimate, 20);
  EXPECT_LE(summary.p50.low, 11);
  EXPECT_GE(summary.p50.high, 11);
  // The 95 % interval of a median of 21 lies between the 6th and the 16th value (binomial ranks);
  // the bootstrap may differ from that by a rank.
  EXPECT_GE(summary.p50.low, 5);
  EXPECT_LE(summary.p50.high, 17);
  EXPECT_LE(summary.p95.high, 21);
}

TEST(StatisticsTest, OneOutlierMovesNeitherMinNorMedian) {
  auto samples = counted(21);
  samples[20] = 1e6;
  const LatencySummary summary = summarize(samples);
  EXPECT_EQ(summary.min, 1);
  EXPECT_DOUBLE_EQ(summary.p50.estimate, 11);
}

TEST(StatisticsTest, P99OnlyFrom500RunsOn) {
  EXPECT_FALSE(summarize(counted(499)).p99);
  const LatencySummary summary = summarize(counted(501));
  ASSERT_TRUE(summary.p99);
  EXPECT_DOUBLE_EQ(summary.p99->estimate, 496);  // 0.99 * 500 = 495 above the first
  EXPECT_TRUE(to_json(summarize(counted(499)))["p99"].is_null());
  EXPECT_EQ(to_json(summary)["p99"]["value"], 496);
}

TEST(StatisticsTest, IntervalOfConstantTimesIsThatTime) {
  const LatencySummary summary = summarize(std::vector<double>(30, 2.5));
  EXPECT_EQ(summary.p95.low, 2.5);
  EXPECT_EQ(summary.p95.high, 2.5);
}

TEST(StatisticsTest, NoSamples) {
  const LatencySummary summary = summarize({});
  EXPECT_TRUE(std::isnan(summary.min));
  EXPECT_EQ(to_json(summary)["min"], "nan");
}

}  // namespace
}  // namespace tenonnx
