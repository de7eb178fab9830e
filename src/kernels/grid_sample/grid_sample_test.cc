// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "kernels/grid_sample/grid_sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tenonnx {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// One channel of height 2 at one point.
float at(const std::vector<float>& values, float x, float y,
         const GridSampleOptions& options = {}) {
  GridSampleSizes sizes;
  sizes.batch = sizes.channels = 1;
  sizes.in = {1, 2, static_cast<std::int64_t>(values.size() / 2)};
  const float grid[2] = {x, y};
  float out = -7;
  grid_sample_reference(options, sizes, GridSampleTensors<float, float>{values.data(), grid, &out});
  return out;
}

TEST(GridSampleReference, WorkedExamples) {
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

TEST(GridSampleReference, WhatIsNotSampledStaysOutside) {
  const std::vector<float> v = {kNan, kInf, 20, kNan};
  EXPECT_EQ(at(v, -0.5F, 0.5F), 20);  // exactly on it
  EXPECT_EQ(at(v, -0.5F, 0.5F, {GridSampleMode::kCubic}), 20);
  EXPECT_EQ(at(v, kNan, 0), 0);
  EXPECT_EQ(at(v, 0, -kInf), 0);
  EXPECT_FALSE(std::isfinite(at(v, 0, 0)));
}

}  // namespace
}  // namespace tenonnx
