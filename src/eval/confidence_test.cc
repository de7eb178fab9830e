// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "eval/confidence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tenonnx {
namespace {

// numpy.percentile([15, 20, 35, 40, 50], q), by hand: position q / 100 * 4.
TEST(Percentile, InterpolatesLinearly) {
  const std::vector<double> v = {40, 15, 50, 35, 20};
  EXPECT_EQ(percentile(v, 0), 15);
  EXPECT_EQ(percentile(v, 50), 35);
  EXPECT_EQ(percentile(v, 100), 50);
  EXPECT_DOUBLE_EQ(percentile(v, 40), 29);  // 20 + 0.6 * 15
  EXPECT_DOUBLE_EQ(percentile(v, 95), 48);  // 40 + 0.8 * 10
  const std::vector<double> one = {3};
  EXPECT_EQ(percentile(one, 95), 3);
  EXPECT_TRUE(std::isnan(percentile({}, 50)));
}

TEST(BootstrapPercentile, IsDeterministicAndHoldsTheEstimate) {
  std::vector<double> samples;
  for (int i = 0; i < 40; ++i) samples.push_back((i * 37) % 101);
  const ConfidenceInterval a = bootstrap_percentile(samples, 50);
  const ConfidenceInterval b = bootstrap_percentile(samples, 50);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_LE(a.low, a.estimate);
  EXPECT_GE(a.high, a.estimate);
  EXPECT_LT(a.low, a.high);
  BootstrapOptions other;
  other.seed = 2;
  other.level = 0.5;
  const ConfidenceInterval narrow = bootstrap_percentile(samples, 50, other);
  EXPECT_LT(narrow.high - narrow.low, a.high - a.low);
}

// What a 95 % interval promises. 200 sets of 50 normal samples: coverage 0.95 would give 190 +- 3;
// the percentile method at n = 50 covers a few percent less. A wrong tail (2.5 against 5,
// one-sided) falls below 180 or, with an interval of everything, to 200.
TEST(BootstrapPercentile, CoversTheMedianAsOftenAsItSays) {
  std::mt19937_64 generator(3);
  int covered = 0;
  for (int set = 0; set < 200; ++set) {
    std::vector<double> samples;
    for (int i = 0; i < 50; ++i) {
      double sum = 0;  // of 12 uniforms: near enough to normal, with median 6
      for (int k = 0; k < 12; ++k) sum += static_cast<double>(generator() >> 11) * 0x1p-53;
      samples.push_back(sum);
    }
    BootstrapOptions options;
    options.resamples = 400;
    options.seed = static_cast<std::uint64_t>(set);
    const ConfidenceInterval interval = bootstrap_percentile(samples, 50, options);
    covered += interval.low <= 6 && 6 <= interval.high;
  }
  EXPECT_GE(covered, 180);
  EXPECT_LE(covered, 199);
}

TEST(BootstrapPercentile, SeedChoosesTheResamples) {
  std::vector<double> samples;
  for (int i = 1; i <= 100; ++i) samples.push_back(std::sqrt(i));
  BootstrapOptions options;
  options.resamples = 99;  // odd positions between samples: no two intervals alike
  const ConfidenceInterval one = bootstrap_percentile(samples, 95, options);
  options.seed = 2;
  const ConfidenceInterval two = bootstrap_percentile(samples, 95, options);
  EXPECT_NE(one.low, two.low);
  EXPECT_EQ(one.estimate, two.estimate);
}

TEST(BootstrapPercentile, FewSamples) {
  const std::vector<double> one = {3};
  EXPECT_EQ(bootstrap_percentile(one, 95).low, 3);
  EXPECT_EQ(bootstrap_percentile(one, 95).high, 3);
  EXPECT_TRUE(std::isnan(bootstrap_percentile({}, 95).estimate));
}

// Images of which a third are found: AP of n objects with precision 1 is about their recall.
TEST(BootstrapAp, IsDeterministicAndNarrowsWithImages) {
  const auto interval = [](int images, std::uint64_t seed) {
    CocoDataset dataset;
    dataset.categories = {{1, "c"}};
    std::vector<CocoResult> results;
    for (int i = 1; i <= images; ++i) {
      dataset.images.push_back({i, "", 100, 100});
      dataset.annotations.push_back({i, i, 1, {0, 0, 10, 10}, 100, false, false});
      if (i % 3 == 0) results.push_back({i, 1, {0, 0, 10, 10}, 0.9});
    }
    const auto evaluation = CocoEvaluation::create(dataset, results);
    BootstrapOptions options;
    options.seed = seed;
    options.resamples = 300;
    return bootstrap_ap(*evaluation, options);
  };
  const ConfidenceInterval few = interval(30, 1), many = interval(300, 1);
  EXPECT_EQ(few.low, interval(30, 1).low);
  EXPECT_NEAR(many.estimate, 1.0 / 3, 0.01);
  EXPECT_LT(many.low, many.estimate);
  EXPECT_GT(many.high, many.estimate);
  // Of a proportion 1/3 over 300: 1.96 * sqrt(2/9/300) = 0.053 either side; half of it as slack for
  // 300 resamples.
  EXPECT_NEAR(many.high - many.low, 2 * 0.053, 0.053);
  EXPECT_GT(few.high - few.low, 2 * (many.high - many.low));
}

TEST(ConfidenceInterval, JsonStatesTheMethod) {
  const Json json = to_json(ConfidenceInterval{1, 0.5, 2, {100, 0.9, 7}});
  EXPECT_EQ(json["low"], 0.5);
  EXPECT_EQ(json["level"], 0.9);
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["method"], "percentile bootstrap");
}

}  // namespace
}  // namespace tenonnx
