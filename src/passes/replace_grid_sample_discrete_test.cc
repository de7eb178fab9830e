// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "passes/fusion_test_support.h"
#include "passes/grid_sample_test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kPass = "replace_grid_sample_discrete";

// Each pixel holds its own number, so that the output is the index.
Tensor numbered(const GridSampleCase& c) {
  Tensor value(DType::kFloat32, c.value_shape());
  for (std::int64_t i = 0; i < value.size(); ++i)
    value.mutable_data<float>()[i] = static_cast<float>(i);
  return value;
}

// Locations in 0..1, and outside by up to a third; as a grid.
Tensor locations(const GridSampleCase& c) {
  Tensor grid(DType::kFloat32, c.grid_shape());
  std::uint32_t state = 99;
  for (std::int64_t i = 0; i < grid.size(); ++i) {
    state = state * 1664525 + 1013904223;
    const double r = 1.6 * double(state >> 8) / double(1 << 24) - 0.3;
    grid.mutable_data<float>()[i] = static_cast<float>(2 * r - 1);
  }
  return grid;
}

Tensor discrete(const GridSampleCase& c, const PassOptions& options, const Tensor& grid) {
  Model model = c.model();
  const PassOutcome outcome = run_pass(model, kPass, options);
  EXPECT_EQ(outcome.applied, 1) << first_reason(outcome);
  return run_on_cpu(model, {{"value", numbered(c)}, {"grid", grid}}).at("y");
}

// The number of pixel (column, row) of image n and channel k, where the two follow from locations.
using Index = std::function<double(double location, std::int64_t size)>;
void expect_indices(const GridSampleCase& c, const Tensor& grid, const Tensor& out,
                    const Index& index, std::int64_t most_x) {
  const std::int64_t points = c.out_height * c.out_width;
  std::int64_t checked = 0;
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (std::int64_t k = 0; k < points; ++k) {
      const float* g = grid.data<float>() + (n * points + k) * 2;
      const double rx = (double(g[0]) + 1) / 2, ry = (double(g[1]) + 1) / 2;
      // Where float32 may round to the other side.
      const auto near_step = [](double at) { return std::abs(at - std::round(at)) < 1e-4; };
      if (near_step(rx * double(c.width)) || near_step(ry * double(c.height)) ||
          near_step(rx * double(c.width) + 0.5) || near_step(ry * double(c.height) + 0.5))
        continue;
      const double x = std::clamp(index(rx, c.width), 0.0, double(most_x));
      const double y = std::clamp(index(ry, c.height), 0.0, double(c.height - 1));
      for (std::int64_t ch = 0; ch < c.channels; ++ch) {
        const double number =
            (double(n * c.channels + ch) * double(c.height) + y) * double(c.width) + x;
        ASSERT_EQ(out.data<float>()[(n * c.channels + ch) * points + k], number)
            << "location " << rx << ", " << ry;
      }
      ++checked;
    }
  EXPECT_GT(checked, points);
}

double historical(double r, std::int64_t size) { return std::trunc(r * double(size) + 0.5); }
double nearest(double r, std::int64_t size) { return std::floor(r * double(size)); }

TEST(ReplaceGridSampleDiscrete, EachFormulaBindsEachAxisByItsOwn) {
  for (const auto& [height, width] : {std::pair{5, 9}, {9, 5}, {6, 6}, {1, 3}}) {
    GridSampleCase c = roomy({});
    c.height = height;
    c.width = width;
    const Tensor grid = locations(c);
    for (const char* form : {"rows", "elements", "two_axis"}) {
      expect_indices(c, grid, discrete(c, {{"form", form}}, grid), nearest, c.width - 1);
      expect_indices(c, grid, discrete(c, {{"form", form}, {"formula", "historical"}}, grid),
                     historical, c.width - 1);
    }
  }
}

// The two are not the same thing: each axis differs wherever the fraction of r * size is a half or
// more. Of 31 x 33 x 2 points, 2 % is four standard deviations of a share of a half.
TEST(ReplaceGridSampleDiscrete, TheFormulasDifferInHalfOfTheIndices) {
  GridSampleCase c = roomy({});
  c.channels = 1;
  c.height = 1;  // x alone
  c.width = 80;
  Tensor grid(DType::kFloat32, c.grid_shape());
  std::uint32_t state = 7;
  for (std::int64_t i = 0; i < grid.size(); ++i) {
    state = state * 1664525 + 1013904223;
    grid.mutable_data<float>()[i] = 1.9F * float(state >> 8) / float(1 << 24) - 0.95F;
  }
  const Tensor a = discrete(c, {}, grid), b = discrete(c, {{"formula", "historical"}}, grid);
  EXPECT_NEAR(double(different_bits(a, b)) / double(a.size()), 0.5, 0.045);
}

TEST(ReplaceGridSampleDiscrete, LegacySquareClampReproducesTheFault) {
  GridSampleCase c = roomy({});
  c.height = 4;
  c.width = 9;
  const Tensor grid = locations(c);
  const PassOptions options = {{"formula", "historical"}, {"legacy_square_clamp", "1"}};
  const Tensor faulty = discrete(c, options, grid);
  expect_indices(c, grid, faulty, historical, c.height - 1);
  EXPECT_GT(different_bits(faulty, discrete(c, {{"formula", "historical"}}, grid)), 0);
  // A square level does not show it.
  c.width = 4;
  EXPECT_EQ(
      different_bits(discrete(c, options, grid), discrete(c, {{"formula", "historical"}}, grid)),
      0);
}

// With zeros outside it is what GridSample of mode nearest gives.
TEST(ReplaceGridSampleDiscrete, ZerosOutsideIsGridSampleNearest) {
  GridSampleCase c = roomy({});
  const Tensor grid = locations(c);
  const Tensor zeros = discrete(c, {{"outside", "zeros"}}, grid);
  EXPECT_GT(different_bits(zeros, discrete(c, {}, grid)), 0);
  c.mode = "nearest";
  EXPECT_EQ(different_bits(zeros,
                           run_on_cpu(c.model(), {{"value", numbered(c)}, {"grid", grid}}).at("y")),
            0);
}

TEST(ReplaceGridSampleDiscrete, NothingLeavesTheTensor) {
  for (const char* formula : {"nearest", "historical"}) {
    const GridSampleCase c = roomy({});
    const Tensor out = discrete(c, {{"formula", formula}}, probe_grid(c, true));
    for (std::int64_t i = 0; i < out.size(); ++i) {
      ASSERT_GE(out.data<float>()[i], 0) << formula;
      ASSERT_LT(out.data<float>()[i], float(c.batch * c.channels * c.height * c.width)) << formula;
    }
  }
}

TEST(ReplaceGridSampleDiscrete, RefusesWithNodeAndReason) {
  const auto reason = [](const GridSampleCase& c, const PassOptions& options) {
    Model model = c.model();
    model.mutable_proto().mutable_graph()->mutable_node(0)->set_name("q/3");
    const PassOutcome outcome = run_pass(model, kPass, options);
    EXPECT_EQ(outcome.applied, 0);
    if (outcome.skipped.empty()) return std::string();
    EXPECT_THAT(outcome.skipped[0].node, HasSubstr("q/3"));
    return outcome.skipped[0].reason;
  };
  GridSampleCase c;
  c.mode = "nearest";
  EXPECT_THAT(reason(c, {}), AllOf(HasSubstr("nearest"), HasSubstr("replaces it exactly")));
  c.mode = "bicubic";
  EXPECT_THAT(reason(c, {}), HasSubstr("its mode is cubic"));
  c.mode = "bilinear";
  c.align_corners = true;
  EXPECT_THAT(reason(c, {{"formula", "historical"}}), HasSubstr("align_corners"));
  c.align_corners = false;
  c.padding = "border";
  EXPECT_THAT(reason(c, {{"outside", "zeros"}}), HasSubstr("its padding is border"));
  c.height = 9;
  c.width = 5;
  EXPECT_THAT(reason(c, {{"formula", "historical"}, {"legacy_square_clamp", "1"}}),
              AllOf(HasSubstr("'value' is 9 high and 5 wide"), HasSubstr("leave its row")));
}

TEST(ReplaceGridSampleDiscrete, BadOptionsAreNamed) {
  const auto message = [](const PassOptions& options) {
    return message_of_options(kPass, options);
  };
  EXPECT_THAT(message({{"formula", "floor"}}), HasSubstr("must be nearest or historical"));
  EXPECT_THAT(message({{"legacy_square_clamp", "1"}}), HasSubstr("formula=historical alone"));
  EXPECT_THAT(message({{"legacy_square_clamp", "2"}, {"formula", "historical"}}),
              HasSubstr("must be 0 or 1, got '2'"));
  EXPECT_THAT(message({{"outside", "wrap"}}), HasSubstr("outside must be edge or zeros"));
  EXPECT_THAT(message({{"outside", "zeros"}, {"formula", "historical"}}),
              HasSubstr("goes with formula=nearest alone"));
  EXPECT_THAT(message({{"rows", "1"}}), HasSubstr("unknown option 'rows'"));
}

}  // namespace
}  // namespace tenonnx
