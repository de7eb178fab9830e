// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "passes/fusion_test_support.h"
#include "passes/grid_lines.h"
#include "passes/static_grid_test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kPass = "replace_grid_sample_resize";

// Column j at pixel x0 + dx * j, row i at y0 + dy * i.
Tensor line_grid(const GridSampleCase& c, double x0, double dx, double y0, double dy) {
  Tensor grid(DType::kFloat32, c.grid_shape());
  float* g = grid.mutable_data<float>();
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (std::int64_t i = 0; i < c.out_height; ++i)
      for (std::int64_t j = 0; j < c.out_width; ++j) {
        *g++ = grid_coordinate(x0 + dx * double(j), c.width, c.align_corners);
        *g++ = grid_coordinate(y0 + dy * double(i), c.height, c.align_corners);
      }
  return grid;
}

struct Replaced {
  PassOutcome outcome;
  std::vector<std::string> ops;
  double difference = 0;  // to ONNX Runtime's GridSample
};
Replaced run(const GridSampleCase& c, const Tensor& grid, const std::string& form) {
  Model model = stored_grid_model(c, grid);
  const TensorMap inputs = {{"value", ramp(c.value_shape())}};
  const Tensor own = run_on_cpu(model, inputs).at("y");
  Replaced made;
  made.outcome = run_pass(model, kPass, {{"form", form}});
  made.ops = op_types(model);
  made.difference = largest_difference(own, run_on_cpu(model, inputs).at("y"));
  return made;
}

// Coordinates of up to 40 pixels in float32, rounded four times on each side, and two axes; values
// are within 1, so that a pixel of difference is at most 2.
constexpr double kTolerance = 2 * 2 * 8 * 40 * 0x1p-24;

GridSampleCase sized(std::int64_t height, std::int64_t width, std::int64_t out_height,
                     std::int64_t out_width) {
  GridSampleCase c;
  c.height = height, c.width = width, c.out_height = out_height, c.out_width = out_width;
  return c;
}

TEST(ReplaceGridSampleResize, WholeImageAtHalfSize) {
  const Replaced made =
      run(sized(16, 24, 8, 12), line_grid(sized(16, 24, 8, 12), 0.5, 2, 0.5, 2), "resize");
  ASSERT_EQ(made.outcome.applied, 1) << first_reason(made.outcome);
  EXPECT_THAT(made.ops, ElementsAre("Resize"));
  EXPECT_THAT(made.outcome.sites[0].what, HasSubstr("half_pixel"));
  EXPECT_LE(made.difference, kTolerance);
}

TEST(ReplaceGridSampleResize, AlignedCornersWhateverThePadding) {
  for (const char* padding : {"zeros", "border", "reflection"})
    for (const bool align : {false, true}) {
      GridSampleCase c = sized(7, 10, 13, 28);
      c.padding = padding;
      c.align_corners = align;
      const Replaced made = run(c, line_grid(c, 0, 9.0 / 27, 0, 6.0 / 12), "resize");
      ASSERT_EQ(made.outcome.applied, 1) << first_reason(made.outcome);
      EXPECT_THAT(made.ops, ElementsAre("Resize"));
      EXPECT_THAT(made.outcome.sites[0].what, HasSubstr("align_corners"));
      EXPECT_LE(made.difference, kTolerance) << c.text();
    }
}

TEST(ReplaceGridSampleResize, APartOfTheImageTakesSlices) {
  GridSampleCase c = sized(20, 24, 6, 10);
  // Half as large from pixel 3.5 on, the mean of 3 and 4.
  Replaced made = run(c, line_grid(c, 3.5, 2, 4.5, 2), "resize");
  ASSERT_EQ(made.outcome.applied, 1) << first_reason(made.outcome);
  EXPECT_THAT(made.ops, ElementsAre("Slice", "Resize"));
  EXPECT_LE(made.difference, kTolerance);
  // Twice as large, cells of half a pixel: what lies between pixels 4 and 5 needs 4, whose first
  // outputs are not taken.
  made = run(c, line_grid(c, 4.75, 0.5, 7.25, 0.5), "resize");
  ASSERT_EQ(made.outcome.applied, 1) << first_reason(made.outcome);
  EXPECT_THAT(made.ops, ElementsAre("Slice", "Resize", "Slice"));
  EXPECT_LE(made.difference, kTolerance);
  // At whole pixels Slice alone.
  made = run(c, line_grid(c, 3, 1, 2, 1), "resize");
  EXPECT_THAT(made.ops, ElementsAre("Slice"));
  EXPECT_LE(made.difference, kTolerance);
}

TEST(ReplaceGridSampleResize, BorderClampsAsResizeDoes) {
  GridSampleCase c = sized(4, 5, 8, 20);
  c.padding = "border";
  const Tensor grid = line_grid(c, -0.375, 0.25, -0.25, 0.5);
  const Replaced made = run(c, grid, "resize");
  ASSERT_EQ(made.outcome.applied, 1) << first_reason(made.outcome);
  EXPECT_THAT(made.ops, ElementsAre("Resize"));
  EXPECT_LE(made.difference, kTolerance);
  // Zeros padding blends with zeros there.
  c.padding = "zeros";
  const Replaced refused = run(c, grid, "resize");
  EXPECT_EQ(refused.outcome.applied, 0);
  EXPECT_THAT(first_reason(refused.outcome),
              AllOf(HasSubstr("column 0 is at pixel -0.375, outside of 0 to 4"),
                    HasSubstr("padding zeros does not")));
  const Replaced product = run(c, grid, "auto");
  ASSERT_EQ(product.outcome.applied, 1);
  EXPECT_THAT(product.ops, ElementsAre("MatMul", "MatMul"));
  EXPECT_THAT(product.outcome.sites[0].what, HasSubstr("no Resize: column 0"));
  EXPECT_LE(product.difference, kTolerance);
}

TEST(ReplaceGridSampleResize, MatMulTakesEveryStraightGrid) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-3, 12);
  for (const char* mode : {"bilinear", "nearest"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const bool align : {false, true}) {
        GridSampleCase c = sized(8, 10, 7, 9);
        c.mode = mode;
        c.padding = padding;
        c.align_corners = align;
        c.batch = 3;
        // Unevenly spaced, other lines in every image.
        Tensor grid(DType::kFloat32, c.grid_shape());
        for (std::int64_t n = 0; n < c.batch; ++n) {
          std::vector<float> x, y;
          for (int j = 0; j < 9; ++j) x.push_back(grid_coordinate(uniform(random), 10, align));
          for (int i = 0; i < 7; ++i) y.push_back(grid_coordinate(uniform(random), 8, align));
          float* g = grid.mutable_data<float>() + n * 7 * 9 * 2;
          for (int i = 0; i < 7; ++i)
            for (int j = 0; j < 9; ++j) *g++ = x[std::size_t(j)], *g++ = y[std::size_t(i)];
        }
        const Replaced made = run(c, grid, "auto");
        ASSERT_EQ(made.outcome.applied, 1) << first_reason(made.outcome);
        EXPECT_THAT(made.ops, ElementsAre("MatMul", "MatMul"));
        EXPECT_LE(made.difference, kTolerance) << c.text();
      }
}

TEST(ReplaceGridSampleResize, NearestWhereNoTieDecides) {
  GridSampleCase c = sized(9, 12, 3, 4);
  c.mode = "nearest";
  Replaced made = run(c, line_grid(c, 1, 3, 1, 3), "resize");
  ASSERT_EQ(made.outcome.applied, 1) << first_reason(made.outcome);
  EXPECT_EQ(made.difference, 0);
  made = run(c, line_grid(c, 0.5, 3, 1, 3), "resize");
  EXPECT_EQ(made.outcome.applied, 0);
  EXPECT_THAT(first_reason(made.outcome), HasSubstr("column 0 is at pixel 0.5, halfway"));
}

TEST(ReplaceGridSampleResize, AffineGridWithoutRotation) {
  Model model = model_from_text(R"(<ir_version: 9, opset_import: ["" : 20]>
    g (float[1,8,16,44] value) => (float[1,8,8,22] y, float[1,8,16,44] z)
      <float[1,2,3] half = {0.5, 0, 0, 0, 0.5, 0}, float[1,2,3] turned = {1, 0.1, 0, -0.1, 1, 0},
       int64[4] small = {1,8,8,22}, int64[4] same = {1,8,16,44}> {
      centre = AffineGrid <align_corners = 0> (half, small)
      [crop] y = GridSample <align_corners = 0> (value, centre)
      turn = AffineGrid <align_corners = 0> (turned, same)
      [turn] z = GridSample (value, turn)
    })");
  const TensorMap inputs = {{"value", ramp({1, 8, 16, 44})}};
  const TensorMap own = run_on_cpu(model, inputs);
  const PassOutcome outcome = run_pass(model, kPass, {{"form", "resize"}});
  ASSERT_EQ(outcome.applied, 1);
  EXPECT_THAT(outcome.sites[0].node, HasSubstr("crop"));
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].node, HasSubstr("turn"));
  EXPECT_THAT(outcome.skipped[0].reason,
              HasSubstr("not separable: y of row 0 changes from column 0 to column 1"));
  EXPECT_THAT(op_types(model), ElementsAre("Slice", "AffineGrid", "GridSample"));
  EXPECT_LE(largest_difference(own.at("y"), run_on_cpu(model, inputs).at("y")), kTolerance);
}

TEST(ReplaceGridSampleResize, RefusesWithReason) {
  GridSampleCase c = sized(8, 10, 4, 5);
  // A mirror, uneven columns, a step at no whole multiple.
  EXPECT_THAT(first_reason(run(c, line_grid(c, 8, -1, 0, 1), "resize").outcome),
              HasSubstr("its columns are not at pixels that a Resize"));
  Tensor uneven = line_grid(c, 1, 1, 0, 1);
  for (std::int64_t i = 0; i < uneven.size(); i += 10)
    uneven.mutable_data<float>()[i + 2] = uneven.data<float>()[i];
  EXPECT_THAT(first_reason(run(c, uneven, "resize").outcome), HasSubstr("its columns are not"));
  EXPECT_THAT(first_reason(run(c, line_grid(c, 1.3, 1, 0.21, 0.77), "resize").outcome),
              HasSubstr("are not at pixels that a Resize"));
  c.mode = "bicubic";
  EXPECT_THAT(first_reason(run(c, line_grid(c, 1, 1, 1, 1), "auto").outcome), HasSubstr("cubic"));
  Model model = GridSampleCase().model();
  EXPECT_THAT(first_reason(run_pass(model, kPass)), HasSubstr("depends on 'grid'"));
}

// Whatever is taken for a Resize samples the same; one in ten of these grids is one.
TEST(ReplaceGridSampleResize, RandomLinesAgreeWithOnnxRuntime) {
  std::mt19937 random(9);
  const auto below = [&](int most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
  };
  int resized = 0;
  for (int k = 0; k < 600; ++k) {
    GridSampleCase c = sized(2 + below(20), 2 + below(20), 1 + below(20), 1 + below(20));
    c.padding = below(3) > 0 ? "border" : "zeros";
    c.align_corners = below(2) == 0;
    const double dx = double(1 + below(8)) / double(1 + below(4));
    const double dy = double(1 + below(8)) / double(1 + below(4));
    const double x0 = double(below(5)) + (below(2) == 0 ? dx / 2 - 0.5 : 0);
    const double y0 = double(below(5)) + (below(2) == 0 ? dy / 2 - 0.5 : 0);
    SCOPED_TRACE(c.text() + fmt::format(" {} + {} j, {} + {} i", x0, dx, y0, dy));
    const Replaced made = run(c, line_grid(c, x0, dx, y0, dy), "resize");
    resized += made.outcome.applied;
    EXPECT_LE(made.difference, kTolerance);
  }
  EXPECT_GT(resized, 40);
}

TEST(GridLines, RandomResizesAreFound) {
  std::mt19937 random(5);
  const auto below = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
  };
  for (int k = 0; k < 300; ++k) {
    const std::int64_t size = 2 + below(60), in = 1 + below(size), begin = below(size - in + 1);
    const std::int64_t out = 1 + below(60), skip = below(out), count = 1 + below(out - skip);
    std::vector<double> at;
    bool inside = true;
    for (std::int64_t j = 0; j < count; ++j) {
      const double x = (double(j + skip) + 0.5) * double(in) / double(out) - 0.5;
      inside &= x >= 0 && x <= double(in - 1);
      at.push_back(double(begin) + x);
    }
    if (!inside || count < 2) continue;
    const auto found = find_resize(at, size, ResizeRule::kHalfPixel);
    ASSERT_TRUE(found) << size << " " << in << " " << begin << " " << out << " " << skip;
    EXPECT_LE(found->out, out);
  }
}

}  // namespace
}  // namespace tenonnx
