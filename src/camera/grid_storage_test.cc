// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "camera/grid_storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/status.h"
#include "camera/ground_grid.h"

namespace tenonnx {
namespace {

std::int64_t below(std::mt19937& random, unsigned most) {
  return static_cast<std::int64_t>(random() % most);
}

// A perspective, a turn, noise or nothing but points outside.
StaticSource random_source(std::mt19937& random, std::vector<float>& grid) {
  StaticSource s;
  s.images = 1 + below(random, 3);
  s.height = 2 + below(random, 30);
  s.width = 2 + below(random, 50);
  s.out_height = 1 + below(random, 34);
  s.out_width = 1 + below(random, 34);
  s.padding = below(random, 2) == 0 ? StaticPadding::kZeros : StaticPadding::kBorder;
  s.align_corners = below(random, 2) == 0;
  const std::int64_t kind = below(random, 4);
  std::uniform_real_distribution<float> uniform(-1.5F, 1.5F);
  const float turn = uniform(random), tilt = uniform(random);
  for (std::int64_t n = 0; n < s.images; ++n)
    for (std::int64_t j = 0; j < s.out_height; ++j)
      for (std::int64_t i = 0; i < s.out_width; ++i) {
        const float x = 2 * static_cast<float>(i) / static_cast<float>(s.out_width) - 1;
        const float y = 2 * static_cast<float>(j) / static_cast<float>(s.out_height) - 1;
        const float z = 1.6F + tilt * y;
        float u = (x + turn * y) / z, v = (y - turn * x) / z;
        if (kind == 1) u = uniform(random), v = uniform(random);
        if (kind == 2 || (kind == 0 && z < 0.5F)) u = v = kOutsideMark;
        if (below(random, 50) == 0) u = std::numeric_limits<float>::quiet_NaN();
        grid.push_back(u);
        grid.push_back(v);
      }
  s.grid = grid.data();
  return s;
}

void expect_within(const StaticSource& source, const GridPixels& got, double limit) {
  const GridPixels want = exact_pixels(source);
  for (std::size_t i = 0; i < want.x.size(); ++i) {
    ASSERT_EQ(std::isnan(want.x[i]), std::isnan(got.x[i])) << "point " << i;
    if (std::isnan(want.x[i])) continue;
    ASSERT_LE(std::abs(got.x[i] - want.x[i]), limit) << "x of point " << i;
    ASSERT_LE(std::abs(got.y[i] - want.y[i]), limit) << "y of point " << i;
  }
}

TEST(GridStorage, AffineKeepsItsTolerance) {
  std::mt19937 random(7);
  for (int k = 0; k < 150; ++k) {
    SCOPED_TRACE(fmt::format("case {}", k));
    std::vector<float> grid;
    const StaticSource source = random_source(random, grid);
    const double tolerance = std::exp2(-1.0 - static_cast<double>(below(random, 9)));
    const StoredGrid stored = store_affine(source, tolerance);
    // The step is rounded to float32: 2^-24 of half of the largest residual, about 80 pixels.
    expect_within(source, unpack_affine(source, stored.arrays), tolerance + 80 * 0x1p-24);
    EXPECT_LE(stored.max_pixels, tolerance + 80 * 0x1p-24);
    EXPECT_EQ(stored.changed, 0);
    std::size_t bytes = 0;
    for (const auto& [name, array] : stored.arrays) bytes += array.bytes();
    EXPECT_EQ(stored.bytes, static_cast<std::int64_t>(bytes));
  }
}

TEST(GridStorage, CodebookReportsTheErrorOfItsArrays) {
  std::mt19937 random(8);
  for (int k = 0; k < 40; ++k) {
    SCOPED_TRACE(fmt::format("case {}", k));
    std::vector<float> grid;
    const StaticSource source = random_source(random, grid);
    const StoredGrid stored = store_codebook(source, 1 + below(random, 12));
    expect_within(source, unpack_codebook(source, stored.arrays), stored.max_pixels);
    EXPECT_EQ(stored.changed, 0);
    EXPECT_LE(stored.rms_pixels, stored.max_pixels);
    EXPECT_LE(stored.max_pixels, static_cast<double>(source.width + source.height));
  }
}

// 704 x 256 pixels, values 44 x 16, 200 x 200 cells; 1.5 m up, tilted down by 5 degrees.
class ArticleGrid : public testing::Test {
 protected:
  void make(const GroundArea& area) {
    const double s = std::sin(0.087), c = std::cos(0.087);
    const Camera camera = {{560, 0, 352, 0, 560, 140, 0, 0, 1},
                           {0, -1, 0, -s, 0, -c, c, 0, -s},
                           {0, 1.5 * c, 1.5 * s}};
    const auto made = ground_grid({camera}, area, {704, 256}, false);
    ASSERT_TRUE(made.ok());
    grid_ = made->grid;
    EXPECT_GT(made->inside, 6000);
    source_ = {grid_.data<float>(), 1, 16, 44, 200, 200};
  }
  void SetUp() override { make({4, 54, 25, -25, 0, 200, 200}); }
  Tensor grid_;
  StaticSource source_;
};

TEST_F(ArticleGrid, BytesAreThoseOfTheArrays) {
  EXPECT_EQ(store_float32(source_).bytes, 320000);  // 312.5 KiB
  EXPECT_EQ(store_int16(source_).bytes, 160016);    // 156.3 KiB
  EXPECT_EQ(store_blocks(source_).bytes, 400 * (200 + 16));
  EXPECT_EQ(store_float32(source_).max_pixels, 0);
}

TEST_F(ArticleGrid, ErrorsFollowFromTheSteps) {
  const StoredGrid int16 = store_int16(source_);
  // The useful range is 46 pixels wide: half of a step of 46 / 65534, and rounding to float32.
  EXPECT_LE(int16.max_pixels, 46.0 / 65534 / 2 + 46 * 0x1p-22);
  EXPECT_GT(int16.max_pixels, 46.0 / 65534 / 4);
  EXPECT_EQ(int16.changed, 0);
  EXPECT_GT(store_blocks(source_).max_pixels, int16.max_pixels);
}

TEST_F(ArticleGrid, BothSmallFormsFitInto18KiB) {
  // Around the vehicle, of which the camera sees a part; and before it, all sampled at the border.
  constexpr std::int64_t kBudget = 18 * 1024;
  for (const bool all : {false, true}) {
    if (!all) make({-50, 50, 50, -50, 0, 200, 200});
    if (all) make({4, 54, 25, -25, 0, 200, 200});
    if (all) source_.padding = StaticPadding::kBorder;
    const StoredGrid affine = store_affine_within(source_, kBudget);
    EXPECT_LE(affine.bytes, kBudget);
    EXPECT_EQ(affine.changed, 0);
    // 40,000 points in 3.7 bits each: a block whose plane is off by more takes bits from the rest.
    EXPECT_LT(affine.max_pixels, all ? 0.02 : 0.0002);
    const StoredGrid codebook = store_codebook_within(source_, kBudget);
    EXPECT_LE(codebook.bytes, kBudget);
    EXPECT_EQ(codebook.changed, 0);
    EXPECT_LT(codebook.max_pixels, 0.25);
    // The budget is used: a smaller tolerance does not fit.
    if (all) {
      EXPECT_GT(store_affine(source_, affine.max_pixels * 0.9).bytes, kBudget);
    }
  }
}

// Unclipped errors are at most half of the step; 1e-9 pixel is the rounding of float64.
void expect_unclipped(const StoredGrid& stored) {
  const auto step = static_cast<double>(stored.arrays.at("step").data<float>()[0]);
  EXPECT_LE(stored.max_pixels, step / 2 + 1e-9);
}

// From the least bytes that there are to more than any step needs.
void expect_errors_fall_with_the_budget(const StaticSource& source) {
  double last = std::numeric_limits<double>::infinity();
  const std::int64_t least = store_affine_within(source, 1).bytes;
  for (double budget = static_cast<double>(least); budget < 40.0 * static_cast<double>(least);
       budget *= 1.15) {
    SCOPED_TRACE(fmt::format("budget {:.0f}", budget));
    const StoredGrid stored = store_affine_within(source, static_cast<std::int64_t>(budget));
    EXPECT_LE(stored.bytes, static_cast<std::int64_t>(budget));
    EXPECT_LE(stored.max_pixels, last + 1e-9);
    expect_unclipped(stored);
    last = stored.max_pixels;
  }
}

TEST(GridStorage, MoreBytesAreNoLargerErrorOfAffine) {
  std::mt19937 random(9);
  for (int k = 0; k < 20; ++k) {
    SCOPED_TRACE(fmt::format("case {}", k));
    std::vector<float> grid;
    expect_errors_fall_with_the_budget(random_source(random, grid));
  }
}

// A level camera that sees the ground from 2 m on: the blocks next to it are up to 12 pixels off
// their planes, which 15 bits reach from a step of 0.0007 on.
TEST(GridStorage, MoreBytesAreNoLargerErrorBeforeTheCamera) {
  const Camera camera = {
      {500, 0, 320, 0, 500, 180, 0, 0, 1}, {0, -1, 0, 0, 0, -1, 1, 0, 0}, {0, 1.5, 0}};
  for (const std::int64_t cells : {50, 80, 100}) {
    SCOPED_TRACE(fmt::format("{0} x {0} cells", cells));
    const auto made = ground_grid({camera}, {2, 42, 20, -20, 0, cells, cells}, {640, 360}, false);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const StaticSource source = {made->grid.data<float>(), 1, 23, 40, cells, cells};
    expect_errors_fall_with_the_budget(source);
    EXPECT_LT(store_affine_within(source, 1 << 20).max_pixels, 0.001);
    expect_unclipped(store_affine(source, 1e-6));
  }
}

TEST_F(ArticleGrid, ABudgetThatNothingFitsGivesTheSmallest) {
  const StoredGrid affine = store_affine_within(source_, 10);
  EXPECT_GT(affine.bytes, 10);
  EXPECT_EQ(affine.arrays.at("residual").bytes(), 0U);
  EXPECT_EQ(store_codebook_within(source_, 10).arrays.at("patterns").shape()[0], 1);
}

}  // namespace
}  // namespace tenonnx
