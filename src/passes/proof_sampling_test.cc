// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/status.h"
#include "passes/peak_memory.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

TEST(Coordinates, GoToPixelsAndBack) {
  for (const bool aligned : {false, true}) {
    for (const std::int64_t size : {2, 7, 80, 513}) {
      for (const double pixel : {-0.5, 0.0, 1.25, 79.5}) {
        const double grid = pixel_to_grid(pixel, size, aligned);
        // Double: some roundings of numbers below 1e3.
        EXPECT_NEAR(grid_to_pixel(grid, size, aligned), pixel, 1e-10);
      }
    }
  }
  // The ends of the grid are the edges of the image, or the middles of its outer pixels.
  EXPECT_EQ(grid_to_pixel(-1, 80, false), -0.5);
  EXPECT_EQ(grid_to_pixel(1, 80, false), 79.5);
  EXPECT_EQ(grid_to_pixel(-1, 80, true), 0);
  EXPECT_EQ(grid_to_pixel(1, 80, true), 79);
}

TEST(Coordinates, ATieComesBackAsATie) {
  int exact = 0;
  for (int k = 0; k < 79; ++k) {
    const float g = exact_grid(k + 0.5, 80, false);
    exact += ((g + 1) * 80.0F - 1) / 2 == static_cast<float>(k) + 0.5F;
  }
  // Near -1 the steps of g are coarser than those of g + 1, and some half pixels lie between two.
  EXPECT_GT(exact, 60);
}

TEST(Coordinates, ManyOrFewPointsReachEveryCase) {
  for (const std::vector<std::int64_t>& size :
       {std::vector<std::int64_t>{10, 6}, {5, 3}, {80, 45}, {9, 5, 4}}) {
    PointKinds kinds;
    for (const SamplingCase made : kSamplingCases) {
      const auto points = made_points(made, size, kDistinctPoints, 1);
      ASSERT_EQ(points.size(), kDistinctPoints * size.size());
      for (std::int64_t p = 0; p < kDistinctPoints; ++p)
        kinds.count(
            std::span(points).subspan(static_cast<std::size_t>(p) * size.size(), size.size()),
            size);
      EXPECT_EQ(points, made_points(made, size, kDistinctPoints, 1));
    }
    EXPECT_THAT(kinds.missing(), testing::IsEmpty());
    EXPECT_EQ(kinds.not_finite, 0);
  }
}

TEST(Coordinates, OnlyTheTiesAreTies) {
  const std::vector<std::int64_t> size = {10, 6};
  for (const SamplingCase made : {SamplingCase::kInside, SamplingCase::kOutside}) {
    PointKinds kinds;
    const auto points = made_points(made, size, 1000, 1);
    for (std::size_t p = 0; p < points.size(); p += 2)
      kinds.count(std::span(points).subspan(p, 2), size);
    EXPECT_EQ(kinds.tie, 0) << to_string(made);
  }
}

TEST(PointKinds, CountsByHowFarOutside) {
  const std::vector<std::int64_t> size = {10, 6};
  PointKinds kinds;
  const auto see = [&](double x, double y) { kinds.count(std::array{x, y}, size); };
  see(4.5, 2.5);  // centre, and a tie
  see(0, 5);      // corner
  see(9.3, 2);    // border
  see(-0.75, 2);  // outside by less than a pixel
  see(2, 6.5);    // by more, and a tie
  see(-101, 2);   // far
  see(std::numeric_limits<double>::quiet_NaN(), 0);
  EXPECT_EQ(kinds.points, 7);
  EXPECT_EQ(kinds.centre, 1);
  EXPECT_EQ(kinds.corner, 1);
  EXPECT_EQ(kinds.border, 2);  // a corner's middle is its edge
  EXPECT_EQ(kinds.outside_less, 1);
  EXPECT_EQ(kinds.outside_more, 1);
  EXPECT_EQ(kinds.far, 1);
  EXPECT_EQ(kinds.tie, 2);
  EXPECT_EQ(kinds.not_finite, 1);
}

// What rounding does is counted here over every value that could be stored.
TEST(GridRounding, IsWhatRoundingDoes) {
  double half = 0, brain = 0;
  for (int i = 0; i <= 100'000; ++i) {
    const double g = 0.5 + 0.5 * i / 100'000;
    const double h = std::round(g * 2048) / 2048, b = std::round(g * 256) / 256;
    half = std::max(half, std::fabs(g - h) * 40);
    brain = std::max(brain, std::fabs(g - b) * 40);
  }
  // 80 pixels: 0.01, 0.08 and 0.16 to two digits.
  EXPECT_NEAR(grid_rounding(DType::kFloat16, 80, false), half, 1e-4);
  EXPECT_NEAR(grid_rounding(DType::kBFloat16, 80, false), brain, 1e-3);
  EXPECT_EQ(fmt::format("{:.1g}", grid_rounding(DType::kFloat16, 80, false)), "0.01");
  EXPECT_EQ(fmt::format("{:.1g}", grid_rounding(DType::kBFloat16, 80, false)), "0.08");
  EXPECT_EQ(fmt::format("{:.2g}", grid_rounding(DType::kInt8, 80, false)), "0.16");
  EXPECT_NEAR(grid_rounding(DType::kFloat16, 81, true), grid_rounding(DType::kFloat16, 80, false),
              1e-12);
  EXPECT_TRUE(std::isnan(grid_rounding(DType::kBool, 80, false)));
}

// A region as a function of its inputs.
RunTargets runs(const Model& model) {
  return
      [&model](const TensorMap& inputs) -> Result<TensorMap> { return run_on_cpu(model, inputs); };
}

TEST(ElementMap, FollowsMovesAndLinearSteps) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3,70] x, float[70] o) => (float[210,2] y)
    <float k = {-2.5}, int64[2] s = {210,2}> {
      a = Transpose <perm = [2, 1, 0]> (x)
      b = Reshape (a, s)
      c = Mul (b, k)
      m = ReduceMean <keepdims = 0> (o)
      y = Add (c, m)
    })");
  const TensorMap values = {{"x", ramp({2, 3, 70})}, {"o", ramp({70})}};
  const auto maps = find_maps(runs(model), values, "x", {"y"});
  ASSERT_TRUE(maps.ok()) << maps.status().message();
  const ElementMap& map = maps->at("y");
  EXPECT_TRUE(map.complete());
  EXPECT_FALSE(map.moves());
  for (std::int64_t i = 0; i < 420; ++i) {
    // Element (p, q, r) of [70,3,2] is (r, q, p) of [2,3,70].
    const std::int64_t p = i / 6, q = i / 2 % 3, r = i % 2;
    EXPECT_EQ(map.from[static_cast<std::size_t>(i)], (r * 3 + q) * 70 + p);
    EXPECT_NEAR(map.scale[static_cast<std::size_t>(i)], -2.5, 1e-5);  // a few float32 roundings
  }
  // A mean is of all of them.
  const auto of_mean = find_maps(runs(model), values, "o", {"y"});
  ASSERT_TRUE(of_mean.ok());
  EXPECT_EQ(of_mean->at("y").mapped, 0);
}

// As many elements as the values of a detector at 640 x 640 have.
TEST(ElementMap, TellsManyElementsApart) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,8400,192] x) => (float[8,24,8400] y) <int64[4] s = {1,8400,8,24}, int64[3] t = {8,24,8400}> {
      a = Reshape (x, s)
      b = Transpose <perm = [0, 2, 3, 1]> (a)
      y = Reshape (b, t)
    })");
  const auto maps = find_maps(runs(model), {{"x", ramp({1, 8400, 192})}}, "x", {"y"});
  ASSERT_TRUE(maps.ok()) << maps.status().message();
  EXPECT_TRUE(maps->at("y").moves());
  EXPECT_EQ(maps->at("y").from[8400], 1);
}

TEST(ElementMap, HasNoSourceBehindWhatIsNotLinear) {
  for (const char* op : {"Sigmoid (x)", "Clip (x, low, high)", "Mul (x, x)", "Relu (x)"}) {
    const Model model = model_from_text(fmt::format(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[40] x) => (float[40] y) <float low = "
        "{{-1}}, float high = {{1}}> {{ y = {} }}",
        op));
    const auto maps = find_maps(runs(model), {{"x", ramp({40})}}, "x", {"y"});
    ASSERT_TRUE(maps.ok());
    EXPECT_LT(maps->at("y").mapped, 40) << op;
  }
}

TEST(PeakMemory, IsOfWhatIsAliveTogether) {
  // a 400, b 400, c 400 bytes: a is freed when c is there.
  const Model chain = model_from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[100] x) => (float[100] y) { a = Neg (x) "
      "b = Abs (a) c = Relu (b) y = Neg (c) }");
  EXPECT_EQ(peak_memory(chain)->bytes, 800);
  const Model held = model_from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[100] x) => (float[100] y) { a = Neg (x) "
      "b = Abs (a) c = Relu (b) y = Add (c, a) }");
  EXPECT_EQ(peak_memory(held)->bytes, 1200);
  const Model unknown = model_from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N] x) => (float[N] y) { y = Neg (x) }");
  EXPECT_FALSE(peak_memory(unknown).has_value());
}

}  // namespace
}  // namespace tenonnx
