// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "kernels/ms_deform_attn/ms_deform_attn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/guarded_for_test.h"
#include "kernels/targets_for_test.h"

namespace tenonnx {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
// Half of the distance between 1 and its successor: the error of one rounding to nearest.
constexpr double kUnit = 0x1p-24;

// Relative error of storing, and the least that a subnormal result may lose.
template <typename T>
constexpr std::pair<double, double> storage_error() {
  if constexpr (std::is_same_v<T, Half>) return {0x1p-11, 0x1p-25};
  if constexpr (std::is_same_v<T, BHalf>) return {0x1p-8, 0};
  return {0, 0};
}

struct Case {
  std::vector<MSDeformLevel> levels;
  MSDeformSizes sizes;
  MSDeformMode mode = MSDeformMode::kBilinear;
  MSDeformReference reference;  // coordinates 0: none
};

Case random_case(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Case made;
  const int levels = 1 + below(4);
  for (int l = 0; l < levels; ++l)
    made.levels.push_back({1 + below(12), 1 + below(12), below(8) == 0 ? 0 : 1 + below(7)});
  made.levels[0].points = 1 + below(9);
  if (below(8) == 0) made.levels[0].width = 200 + below(100);
  constexpr int kChannels[] = {1,  2,  3,  4,  5,  8,  12, 16, 17,  20,
                               24, 28, 31, 32, 33, 48, 64, 96, 100, 136};
  made.sizes = {1 + below(2), 1 + below(11), 1 + below(9), kChannels[below(20)]};
  made.mode = below(2) == 0 ? MSDeformMode::kBilinear
                            : (below(2) == 0 ? MSDeformMode::kNearest : MSDeformMode::kDiscrete);
  if (below(3) == 0) made.reference = {below(2) == 0 ? 1 : levels, below(2) == 0 ? 2 : 4};
  return made;
}

// A coordinate whose nearest pixel does not depend on the last bits: not near a tie, or exactly
// on one where the arithmetic is exact.
float settled(std::mt19937& random, std::int64_t size, double low, double high) {
  std::uniform_real_distribution<double> uniform(low, high);
  for (;;) {
    const auto location = static_cast<float>(uniform(random));
    const double at =
        location * static_cast<double>(size);  // ties of both modes lie on whole and half ones
    if (std::abs(at * 2 - std::round(at * 2)) > 1e-3) return location;
  }
}

template <typename T>
T stored(float value) {
  T out;
  from_float(value, out);
  return out;
}

template <typename T, typename C>
void check_case(const Case& c, std::mt19937& random) {
  const Against against = random() % 2 == 0 ? Against::kEnd : Against::kBegin;
  ASSERT_EQ(MSDeformPlan::check(c.levels, c.sizes), "");
  const MSDeformPlan plan(c.levels, c.sizes, c.mode);
  const auto& [batch, queries, heads, channels] = c.sizes;
  const std::int64_t points = plan.points(), rows = batch * queries * heads;
  const auto n = [](std::int64_t count) { return static_cast<std::size_t>(count); };
  Guarded<T> value(n(batch * plan.keys() * heads * channels), against);
  Guarded<C> locations(n(rows * points * 2), against);
  Guarded<C> weights(n(rows * points), against);
  Guarded<C> reference(n(batch * queries * std::max<std::int64_t>(c.reference.levels, 1) *
                         std::max<std::int64_t>(c.reference.coordinates, 1)));
  Guarded<T> out(n(rows * channels), against);
  Guarded<T> expected(n(rows * channels));
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(0, 1);
  double largest = 0;
  for (T& v : value) {
    v = stored<T>(normal(random));
    largest = std::max(largest, std::abs(static_cast<double>(to_float(v))));
  }
  const bool referenced = c.reference.coordinates > 0;
  if (referenced)
    for (C& r : reference) r = stored<C>(uniform(random));
  // Narrow coordinates are exact in float32 and in double alike; references add up, and then only
  // bilinear sampling is continuous enough to compare.
  const bool smooth = c.mode == MSDeformMode::kBilinear;
  for (std::size_t i = 0; i < locations.size() / 2; ++i) {
    const MSDeformLevel& level = c.levels[n(plan.tables().level[i % n(points)])];
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const std::int64_t size = axis == 0 ? level.width : level.height;
      C& location = locations[2 * i + axis];
      switch (smooth ? random() % 8 : 7) {
        case 0:  // corners and centres of pixels, ties
          location = stored<C>(static_cast<float>(random() % (2 * n(size) + 1)) /
                               static_cast<float>(2 * size));
          break;
        case 1:  // outside, by less and by more than a pixel
          location = stored<C>(uniform(random) * 4 - 2);
          break;
        case 2:  // far outside
          location = stored<C>((uniform(random) - 0.5F) * 3e4F);
          break;
        default:
          do location = stored<C>(settled(random, size, -0.2, 1.2));
          while (!smooth &&
                 std::abs(to_float(location) * static_cast<double>(size) * 2 -
                          std::round(to_float(location) * static_cast<double>(size) * 2)) < 1e-4);
      }
    }
  }
  for (C& w : weights) w = stored<C>(random() % 16 == 0 ? 0.0F : uniform(random) - 0.2F);
  MSDeformTensors<T, C> tensors{value.data(),
                                locations.data(),
                                weights.data(),
                                out.data(),
                                referenced && smooth ? reference.data() : nullptr,
                                c.reference};
  ms_deform_attn(plan, tensors,
                 random() % 4 == 0 ? static_cast<const Parallel&>(Threads())
                                   : static_cast<const Parallel&>(Serial()));
  tensors.out = expected.data();
  ms_deform_attn_reference(plan, tensors);
  const auto [relative, least] = storage_error<T>();
  for (std::int64_t row = 0; row < rows; ++row) {
    // Each point: a coordinate of one rounding (x = location * size - 0.5; of four with a
    // reference) moves the sample by at most its error in pixels times the largest difference of
    // taps, which is below 2 * largest. The sum of 4 * points products rounds that often, the
    // weights 4 times.
    double sum_of_weights = 0, limit = 0;
    for (std::int64_t p = 0; p < points; ++p) {
      const auto i = n(row * points + p);
      const double w = std::abs(to_float(weights[i]));
      const MSDeformLevel& level = c.levels[n(plan.tables().level[n(p)])];
      // In pixels: locations as far as 1.5 sizes outside can sample; with references offsets may be
      // larger than what they add up to.
      double x = std::abs(to_float(locations[2 * i])), y = std::abs(to_float(locations[2 * i + 1]));
      double roundings = 1;
      if (tensors.reference != nullptr) roundings = 4, x += 1, y += 1;
      x = std::min(x, 4e0), y = std::min(y, 4e0);
      const double pixels =
          roundings * kUnit *
          (x * static_cast<double>(level.width) + y * static_cast<double>(level.height) + 2);
      limit += smooth ? w * pixels * 2 * largest : 0;
      sum_of_weights += w;
    }
    limit += (4 * static_cast<double>(points) + 8) * kUnit * sum_of_weights * largest;
    for (std::int64_t ch = 0; ch < channels; ++ch) {
      const double got = to_float(out[n(row * channels + ch)]);
      const double want = to_float(expected[n(row * channels + ch)]);
      // Both sides are rounded to the storage type.
      ASSERT_LE(std::abs(got - want), limit + 2 * relative * std::abs(want) + 2 * least)
          << "row " << row << " channel " << ch << " of " << channels << ": " << got << " for "
          << want;
    }
  }
}

void check_many(int count, unsigned seed) {
  for_each_target([&] {
    std::mt19937 random(seed);
    for (int i = 0; i < count && !testing::Test::HasFatalFailure(); ++i) {
      SCOPED_TRACE("case " + std::to_string(i));
      const Case c = random_case(random);
      switch (i % 5) {
        case 0:
          check_case<Half, float>(c, random);
          break;
        case 1:
          check_case<Half, Half>(c, random);
          break;
        case 2:
          check_case<BHalf, float>(c, random);
          break;
        default:
          check_case<float, float>(c, random);
      }
    }
  });
}

TEST(MSDeformAttn, AgreesWithTheReferenceOnEveryInstructionSet) { check_many(2000, 1); }

// The shapes: whole models use them.
TEST(MSDeformAttn, ShapesOfDetectors) {
  for_each_target([&] {
    std::mt19937 random(2);
    for (const int channels : {24, 32})
      for (const auto& points : {std::vector<int>{4, 4, 4}, std::vector<int>{3, 6, 3}}) {
        Case c;
        for (int l = 0; l < 3; ++l)
          c.levels.push_back({80 >> l, 80 >> l, points[static_cast<std::size_t>(l)]});
        c.sizes = {1, 40, 8, channels};
        check_case<float, float>(c, random);
      }
  });
}

struct Small {  // one image, one head, one query, `values` as one level of one channel
  std::vector<float> values;
  std::int64_t height, width;
  MSDeformMode mode = MSDeformMode::kBilinear;
  float at(float x, float y, float weight = 1) const {
    const MSDeformPlan plan({{height, width, 1}}, {1, 1, 1, 1}, mode);
    const float location[2] = {x, y};
    float out = -7;
    ms_deform_attn(plan, MSDeformTensors<float, float>{values.data(), location, &weight, &out},
                   Serial());
    return out;
  }
};

TEST(MSDeformAttn, WorkedExamples) {
  for_each_target([] {
    const Small small{{0, 10, 20, 30}, 2, 2};
    // Pixel (0.25, 0.5): location (0.75 / 2, 1 / 2).
    EXPECT_FLOAT_EQ(small.at(0.375F, 0.5F), 12.5F);
    // Location 0 is x = -0.5: half of the first column is outside.
    EXPECT_FLOAT_EQ(small.at(0, 0.25F), 0.0F);
    EXPECT_FLOAT_EQ(small.at(0, 0.75F), 10.0F);
    EXPECT_FLOAT_EQ(small.at(1, 0.75F), 15.0F);
    EXPECT_FLOAT_EQ(small.at(0.5F, 0.5F), 15.0F);
    EXPECT_FLOAT_EQ(small.at(0.5F, 0.5F, 0.5F), 7.5F);
    Small nearest = small;
    nearest.mode = MSDeformMode::kNearest;
    EXPECT_FLOAT_EQ(nearest.at(0.5F, 0.75F), 20);  // x = 0.5: a tie, to even
    EXPECT_FLOAT_EQ(nearest.at(-0.1F, 0.75F), 0);  // x = -0.7 is outside
    Small discrete = small;
    discrete.mode = MSDeformMode::kDiscrete;
    EXPECT_FLOAT_EQ(discrete.at(0.24F, 0.0F), 0);
    EXPECT_FLOAT_EQ(discrete.at(0.25F, 0.0F), 10);  // int(0.25 * 2 + 0.5) = 1
    EXPECT_FLOAT_EQ(discrete.at(9, 9), 30);
    EXPECT_FLOAT_EQ(discrete.at(-9, -9), 0);
  });
}

TEST(MSDeformAttn, WhatIsNotSampledStaysOutside) {
  for_each_target([] {
    // Only pixel (1, 1) of 4 x 4 is finite.
    for (const float poison : {kNan, kInf}) {
      Small small{std::vector<float>(16, poison), 4, 4};
      small.values[5] = 3;
      EXPECT_EQ(small.at(1.5F / 4, 1.5F / 4), 3);  // exactly on it: the others have weight 0
      EXPECT_EQ(small.at(2, 2), 0);
      EXPECT_EQ(small.at(0.5F, 0.5F, 0), 0);  // weight 0
      EXPECT_EQ(small.at(kNan, 0.5F), 0);
      EXPECT_EQ(small.at(0.5F, kNan), 0);
      EXPECT_EQ(small.at(kInf, 0.5F), 0);
      EXPECT_EQ(small.at(-kInf, -kInf), 0);
      EXPECT_FALSE(std::isfinite(small.at(0.5F, 0.5F)));  // those are sampled
      // At the border the neighbour outside is not read in place of another.
      Small edge{std::vector<float>(16, poison), 4, 4};
      edge.values[0] = 8;
      EXPECT_EQ(edge.at(0, 0), 2);
      small.mode = MSDeformMode::kNearest;
      EXPECT_EQ(small.at(kNan, kNan), 0);
      EXPECT_EQ(small.at(1.4F / 4, 1.6F / 4), 3);
    }
    // A weight of NaN is no weight of zero.
    EXPECT_TRUE(std::isnan(Small{{1, 1, 1, 1}, 2, 2}.at(0.5F, 0.5F, kNan)));
    Small discrete{{1, 2, 3, 4}, 2, 2, MSDeformMode::kDiscrete};
    EXPECT_EQ(discrete.at(kNan, kNan), 1);
    EXPECT_EQ(discrete.at(kInf, -kInf), 2);
  });
}

TEST(MSDeformAttn, SaysWhatIsWrongWithSizes) {
  const MSDeformSizes good = {1, 1, 8, 32};
  const auto check = [&](std::vector<MSDeformLevel> levels, MSDeformSizes sizes) {
    return MSDeformPlan::check(levels, sizes);
  };
  EXPECT_EQ(check({{2, 2, 1}}, good), "");
  EXPECT_EQ(check({}, good), "there is no level: spatial_shapes is empty");
  EXPECT_EQ(check({{2, 2, 1}, {0, 5, 1}}, good), "level 1: 0 x 5 pixels: at least 1 x 1 is needed");
  EXPECT_EQ(check({{2, 2, 0}}, good), "no level has a point");
  EXPECT_EQ(check({{2, 2, -1}}, good), "level 0: -1 points");
  EXPECT_EQ(check({{2, 2, 1}}, {1, 1, 0, 32}),
            "0 heads of 32 channels: at least 1 of each is needed");
  EXPECT_THAT(check({{100000, 100000, 1}}, good), testing::HasSubstr("exceed 2^31 elements"));
  EXPECT_THAT(check({{1 << 25, 1, 1}}, {1, 1, 1, 1}), testing::HasSubstr("beyond 2^24"));
}

}  // namespace
}  // namespace tenonnx
