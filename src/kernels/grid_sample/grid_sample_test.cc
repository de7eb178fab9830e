// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "kernels/grid_sample/grid_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/scratch.h"
#include "kernels/targets_for_test.h"

namespace tenonnx {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// One channel of height 2 at one point. The kernel has to agree on every instruction set: alone,
// and as one of 20 channels (blocks) with either layout.
float at(const std::vector<float>& values, float x, float y, GridSampleOptions options = {}) {
  GridSampleSizes sizes;
  sizes.batch = sizes.channels = 1;
  sizes.in = {1, 2, static_cast<std::int64_t>(values.size() / 2)};
  const float grid[2] = {x, y};
  float out = -7;
  grid_sample_reference(options, sizes, GridSampleTensors<float, float>{values.data(), grid, &out});
  for_each_target([&] {
    for (const std::int64_t channels : {1, 20}) {
      for (const bool last : {false, true}) {
        sizes.channels = channels;
        options.channels_last = last;
        std::vector<float> many;
        for (std::size_t i = 0; i < values.size() * static_cast<std::size_t>(channels); ++i)
          many.push_back(values[last ? i / static_cast<std::size_t>(channels) : i % values.size()]);
        std::vector<float> got(static_cast<std::size_t>(channels), -7);
        grid_sample(options, sizes, GridSampleTensors<float, float>{many.data(), grid, got.data()},
                    Serial());
        for (const float g : got)
          EXPECT_TRUE(g == out || (std::isnan(g) && std::isnan(out)) || std::abs(g - out) < 1e-5F)
              << channels << " channels, last " << last << ": " << g << " for " << out;
      }
    }
  });
  return out;
}

TEST(GridSample, WorkedExamples) {
  const std::vector<float> v = {0, 10, 20, 30};
  EXPECT_FLOAT_EQ(at(v, -0.25F, 0), 12.5F);  // pixel (0.25, 0.5)
  EXPECT_FLOAT_EQ(at(v, -1, 0.5F), 10);      // u = -1 is x = -0.5: half of pixel (0, 1)
  GridSampleOptions options;
  options.padding = GridSamplePadding::kBorder;
  EXPECT_FLOAT_EQ(at(v, -1, 0.5F, options), 20);
  EXPECT_FLOAT_EQ(at(v, kInf, 0.5F, options), 30);
  EXPECT_FLOAT_EQ(at(v, kNan, 0.5F, options), 20);
  options.padding = GridSamplePadding::kReflection;
  EXPECT_FLOAT_EQ(at(v, 1.5F, 0.5F, options), 30);  // x = 2 reflects to 1
  EXPECT_FLOAT_EQ(at(v, kInf, 0.5F, options), 20);
  options = {};
  options.align_corners = true;
  EXPECT_FLOAT_EQ(at(v, 1, 1, options), 30);
  EXPECT_FLOAT_EQ(at(v, 0, 0, options), 15);
  options = {GridSampleMode::kNearest};
  EXPECT_FLOAT_EQ(at(v, 0, 0.5F, options), 20);  // x = 0.5: a tie, to even
  options = {GridSampleMode::kCubic};
  // Weights at 0.5 are -3/32, 19/32, 19/32, -3/32; the outer two lie outside.
  EXPECT_FLOAT_EQ(at(v, 0, 0, options), 60.0F * 19 * 19 / 1024);
}

TEST(GridSample, WhatIsNotSampledStaysOutside) {
  const std::vector<float> v = {kNan, kInf, 20, kNan};
  EXPECT_EQ(at(v, -0.5F, 0.5F), 20);  // exactly on it
  EXPECT_EQ(at(v, -0.5F, 0.5F, {GridSampleMode::kCubic}), 20);
  EXPECT_EQ(at(v, kNan, 0), 0);
  EXPECT_EQ(at(v, 0, -kInf), 0);
  EXPECT_FALSE(std::isfinite(at(v, 0, 0)));
}

TEST(GridSample, TheLastPixelNextToInfinity) {
  // At an edge the pair of pixels that is read at once is moved; the weights have to move with it.
  const std::vector<float> v = {1, kInf, 3, 4, kInf, 6};
  EXPECT_EQ(at(v, 2.0F / 3, -0.5F), 3);
  EXPECT_EQ(at(v, -2.0F / 3, -0.5F), 1);
  EXPECT_EQ(at(v, 1, -0.5F), 1.5F);  // half of it lies outside
  EXPECT_EQ(at(v, -1, -0.5F), 0.5F);
}

TEST(GridSample, WhatCannotBeSampled) {
  GridSampleSizes sizes;
  sizes.batch = sizes.channels = 1;
  sizes.in = {1, 0, 4};
  EXPECT_EQ(check({}, sizes), "an image of 0 x 4 has no pixel to sample");
  sizes.in = {1, 1, (1 << 24) + 1};
  EXPECT_THAT(check({}, sizes), testing::HasSubstr("longer than 2^24 pixels"));
  sizes.in = {1, 1 << 16, 1 << 16};
  EXPECT_THAT(check({}, sizes), testing::HasSubstr("more than 2^31 - 2 pixels"));
  sizes.in = {2, 2, 2};
  sizes.dimensions = 3;
  EXPECT_THAT(check({GridSampleMode::kCubic}, sizes), testing::HasSubstr("mode cubic has no form"));
}

TEST(GridSample, LargeOutputsAtAnyAlignment) {
  // Beyond 8 MiB the output goes around the caches where it can be aligned.
  GridSampleSizes sizes;
  sizes.batch = 1, sizes.channels = 16;
  sizes.in = {1, 8, 8}, sizes.out = {1, 512, 288};
  const std::size_t count = 16 * 512 * 288;
  std::vector<float> value(16 * 64), grid(512 * 288 * 2);
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<float>(i % 37);
  for (std::size_t i = 0; i < grid.size(); ++i) grid[i] = static_cast<float>(i % 401) / 200 - 1;
  for_each_target([&] {
    std::vector<float> expected;
    for (const std::size_t off : {0, 4, 36}) {
      std::vector<char> memory(count * 4 + 64);
      auto* out = reinterpret_cast<float*>(memory.data() + off);
      grid_sample({}, sizes, GridSampleTensors<float, float>{value.data(), grid.data(), out},
                  Serial());
      std::vector<float> got(count);
      std::memcpy(got.data(), memory.data() + off, count * 4);
      if (expected.empty()) expected = got;
      EXPECT_EQ(got, expected) << off;
    }
  });
}

TEST(Scratch, NoMemoryIsAnError) {
  Scratch scratch;
  EXPECT_THROW(scratch.get(std::size_t{1} << 60), std::runtime_error);
  EXPECT_NE(scratch.get(64), nullptr);
}

}  // namespace
}  // namespace tenonnx
