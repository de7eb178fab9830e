// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "kernels/static_sample/static_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "kernels/guarded_for_test.h"
#include "kernels/targets_for_test.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kUnit = 0x1p-24;

std::size_t n(std::int64_t i) { return static_cast<std::size_t>(i); }

int below(std::mt19937& random, int most) {
  return static_cast<int>(random() % static_cast<unsigned>(most));
}

StaticSource random_source(std::mt19937& random, std::vector<float>& grid) {
  StaticSource s;
  s.images = 1 + below(random, 2);
  s.height = 1 + below(random, 20);
  s.width = below(random, 10) == 0 ? 100 + below(random, 100) : 1 + below(random, 20);
  s.out_height = 1 + below(random, 23);
  s.out_width = below(random, 10) == 0 ? 100 + below(random, 40) : 1 + below(random, 24);
  s.padding = below(random, 2) == 0 ? StaticPadding::kZeros : StaticPadding::kBorder;
  s.align_corners = below(random, 2) == 0;
  grid.resize(n(s.images * s.out_height * s.out_width * 2));
  constexpr float kSpecial[] = {kNan, kInf, -kInf, 3e38F, 0, 1, -1};
  std::uniform_real_distribution<float> uniform(-1.4F, 1.4F);
  for (float& g : grid) g = below(random, 20) == 0 ? kSpecial[below(random, 7)] : uniform(random);
  s.grid = grid.data();
  return s;
}

template <typename T>
void check_case(std::mt19937& random, int kind) {
  constexpr int kChannels[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 70};
  std::vector<float> source_grid;
  const StaticSource source = random_source(random, source_grid);
  const StaticGrid grid = kStaticEncoders[kind](source).grid;
  ASSERT_EQ(grid.check(), "");
  StaticSizes sizes;
  sizes.batch = grid.images == 1 ? 1 + below(random, 3) : grid.images;
  sizes.channels = kChannels[below(random, 17)];
  sizes.channels_last = below(random, 2) == 0;
  using G = Guarded<T>;
  const auto against = below(random, 2) == 0 ? Against::kEnd : Against::kBegin;
  G value(n(sizes.batch * sizes.channels * grid.height * grid.width), against);
  G out(n(sizes.batch * sizes.channels * grid.points()), against);
  double largest = 0;
  for (auto& v : value) {
    from_float(std::uniform_real_distribution<float>(-2, 2)(random), v);
    largest = std::max(largest, std::abs(static_cast<double>(to_float(v))));
  }
  std::vector<T> expected(out.size());
  static_sample_reference(grid, sizes, value.data(), expected.data());
  std::memset(static_cast<void*>(out.data()), 0x55, out.size() * sizeof(T));
  if (below(random, 8) == 0)
    static_sample(grid, sizes, value.data(), out.data(), Threads());
  else
    static_sample(grid, sizes, value.data(), out.data(), Serial());
  // A decoded coordinate takes two roundings of numbers below twice the side and its fraction one;
  // it moves the sum by at most the difference of two taps along that axis, below 2 * largest.
  // Weights (which add up to 1) round twice, the sum of four products four times.
  const double sides = static_cast<double>(grid.width + grid.height + 4);
  const double moved = kind < 2 ? 0 : 3 * 2 * kUnit * sides * 2 * largest;
  const double limit = moved + 8 * kUnit * largest;
  double relative = 0, least = 0;
  if (std::is_same_v<T, Half>) relative = 0x1p-11, least = 0x1p-25;
  if (std::is_same_v<T, BHalf>) relative = 0x1p-8;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double got = to_float(out[i]), want = to_float(expected[i]);
    // Both are rounded to the type.
    ASSERT_LE(std::abs(got - want), limit + 2 * relative * std::abs(want) + 2 * least)
        << "element " << i << ", " << sizes.channels << " channels"
        << (sizes.channels_last ? " last" : " first") << ", form " << kind;
  }
}

TEST(StaticSample, AgreesWithTheReferenceOnEveryInstructionSet) {
  for_each_target([] {
    std::mt19937 random(1);
    for (int i = 0; i < 2000 && !testing::Test::HasFatalFailure(); ++i) {
      SCOPED_TRACE("case " + std::to_string(i));
      const int kind = i / 5 % 4;
      if (i % 5 == 0)
        check_case<Half>(random, kind);
      else if (i % 5 == 1)
        check_case<BHalf>(random, kind);
      else
        check_case<float>(random, kind);
    }
  });
}

// Outputs that go around the caches, from any address of a float: the same bits as through them.
TEST(StaticSample, LargeOutputsOfAnyAlignment) {
  // 33 channels (two blocks and a rest) of 65,536 points are above the 8 MiB that are streamed.
  constexpr std::int64_t kSide = 256, kChannels = 33, kPixels = 12 * 10;
  std::mt19937 random(4);
  std::uniform_real_distribution<float> any(-1.2F, 1.2F);
  std::vector<float> coordinates(n(kSide * kSide * 2)), value(n(kChannels * kPixels));
  for (float& v : coordinates) v = any(random);
  for (float& v : value) v = any(random);
  const StaticSource source{coordinates.data(), 1, 12, 10, kSide, kSide};
  for (const int kind : {0, 3}) {
    const StaticGrid grid = kStaticEncoders[kind](source).grid;
    const StaticSizes sizes{1, kChannels, false};
    std::vector<float> expected(n(kChannels * grid.points()));
    static_sample_reference(grid, sizes, value.data(), expected.data());
    for_each_target([&] {
      for (const std::size_t past : {0, 1, 5}) {
        std::vector<float> memory(expected.size() + 32, -7);
        auto* out = memory.data() + 16 + past;
        static_sample(grid, sizes, value.data(), out, Threads());
        for (std::size_t i = 0; i < expected.size(); ++i)
          ASSERT_NEAR(out[i], expected[i], 1e-5) << "element " << i << ", address + " << past;
        EXPECT_EQ(out[-1], -7);
        EXPECT_EQ(out[expected.size()], -7);
      }
    });
  }
}

// A grid and values of one channel, sampled by the reference as float32.
std::vector<float> sampled(const StaticGrid& grid, const std::vector<float>& values) {
  std::vector<float> out(n(grid.images * grid.points()), -7);
  static_sample(grid, {grid.images, 1, false}, values.data(), out.data(), Serial());
  return out;
}

TEST(StaticSample, WorkedExamples) {
  for_each_target([] {
    const std::vector<float> values = {0, 10, 20, 30};
    // Pixel (0.25, 0.5); u = -1 is x = -0.5; far outside; on a pixel.
    const std::vector<float> grid = {-0.25F, 0, -1, 0.5F, 9, 9, 0.5F, 0.5F};
    StaticSource source{grid.data(), 1, 2, 2, 2, 2};
    EXPECT_THAT(sampled(encode_taps(source).grid, values), testing::ElementsAre(12.5, 10, 0, 30));
    source.padding = StaticPadding::kBorder;
    EXPECT_THAT(sampled(encode_taps(source).grid, values), testing::ElementsAre(12.5, 20, 30, 30));
    for (const auto& made : {encode_int16(source), encode_blocks(source)}) {
      const auto got = sampled(made.grid, values);
      // Steps of 10 and 20 values a pixel.
      EXPECT_NEAR(got[0], 12.5, made.error_pixels * 30 + 1e-5);
      EXPECT_NEAR(got[1], 20, made.error_pixels * 30 + 1e-5);
      EXPECT_NEAR(got[3], 30, made.error_pixels * 30 + 1e-5);
    }
  });
}

TEST(StaticSample, WhatIsNotSampledStaysOutside) {
  for_each_target([] {
    std::vector<float> values(16, kNan);
    values[5] = 3;
    const std::vector<float> grid = {-0.25F, -0.25F, 9, 9, kNan, 0, kInf, -kInf};  // pixel (1, 1)
    const StaticSource source{grid.data(), 1, 4, 4, 1, 4};
    for (int kind = 0; kind < 2; ++kind)
      EXPECT_THAT(sampled(kStaticEncoders[kind](source).grid, values),
                  testing::ElementsAre(3, 0, 0, 0));
    // Quantised coordinates that sample nothing go on to sample nothing.
    for (int kind = 2; kind < 4; ++kind) {
      const auto got = sampled(kStaticEncoders[kind](source).grid, values);
      EXPECT_THAT(std::vector<float>(got.begin() + 1, got.end()), testing::Each(0));
    }
  });
}

TEST(StaticSample, EncodersSayWhatTheyCost) {
  // A smooth map: 40 x 60 points turned by 0.3 over 30 x 50 pixels.
  std::vector<float> grid;
  for (int y = 0; y < 40; ++y)
    for (int x = 0; x < 60; ++x) {
      const float u = static_cast<float>(x) / 30 - 1, v = static_cast<float>(y) / 20 - 1;
      grid.push_back(0.95F * u - 0.3F * v);
      grid.push_back(0.3F * u + 0.95F * v);
    }
  const StaticSource source{grid.data(), 1, 30, 50, 40, 60};
  EXPECT_EQ(encode_taps(source).bytes, 2400 * 32);
  EXPECT_EQ(encode_nearest(source).bytes, 2400 * 8);
  EXPECT_LE(encode_nearest(source).error_pixels, 0.5);
  EXPECT_GT(encode_nearest(source).error_pixels, 0.4);
  const StaticEncoding whole = encode_int16(source), blocks = encode_blocks(source);
  EXPECT_EQ(whole.bytes, 2400 * 4 + 16);
  EXPECT_EQ(blocks.bytes, 24 * 216);
  // Half a step: 52 pixels in 65534 steps; the range of a block, at most 9 points of 0.95 * 25/30
  // + 0.3 * 25/20 pixels, in 254. And float32 of numbers below 64.
  EXPECT_LE(whole.error_pixels, 52.0 / 65534 / 2 + 64 * kUnit * 2);
  EXPECT_LE(blocks.error_pixels, 9 * (0.95 * 25 / 30 + 0.3 * 25 / 20) / 254 / 2 + 64 * kUnit * 2);
  EXPECT_GT(blocks.error_pixels, whole.error_pixels);
}

TEST(StaticSample, SaysWhatIsWrong) {
  const std::vector<float> source_grid(8, 0.0F);
  const StaticSource source{source_grid.data(), 1, 3, 5, 2, 2};
  const auto with = [&](int kind, auto change) {
    StaticGrid grid = kStaticEncoders[kind](source).grid;
    change(grid);
    return grid.check();
  };
  EXPECT_EQ(with(0, [](auto& g) { g.indices[3] = 15; }), "indices[3] is 15, -1 to 14 are possible");
  EXPECT_EQ(with(0, [](auto& g) { g.indices[0] = -2; }), "indices[0] is -2, -1 to 14 are possible");
  EXPECT_EQ(with(0, [](auto& g) { g.weights.pop_back(); }),
            "weights has 15 elements, 16 are needed");
  EXPECT_EQ(with(0, [](auto& g) { g.taps = 2; }), "a point has 2 taps, 1 or 4 are possible");
  EXPECT_EQ(with(0, [](auto& g) { g.width = 0; }),
            "the width of the values is 0, 1 to 2^22 are possible");
  EXPECT_EQ(with(2, [](auto& g) { g.coordinates.clear(); }),
            "coordinates has 0 elements, 8 are needed");
  EXPECT_THAT(with(2, [](auto& g) { g.step[1] = kNan; }), HasSubstr("not finite"));
  EXPECT_EQ(with(3, [](auto& g) { g.delta.clear(); }), "delta has 0 elements, 200 are needed");
  EXPECT_THAT(with(3, [](auto& g) { g.base[2] = 1e9F; }), HasSubstr("the base of block 0 reaches"));
}

}  // namespace
}  // namespace tenonnx
