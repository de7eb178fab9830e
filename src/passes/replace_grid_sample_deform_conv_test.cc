// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/fusion_test_support.h"
#include "passes/grid_sample_test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kPass = "replace_grid_sample_deform_conv";

Model opset_19(const GridSampleCase& c) {
  Model model = c.model();
  model.mutable_proto().mutable_opset_import(0)->set_version(19);
  model.mutable_proto().set_ir_version(9);
  return model;
}

GridSampleCase sized(GridSampleCase c, std::int64_t height, std::int64_t width) {
  c.height = height;
  c.width = width;
  return c;
}

struct Replaced {
  PassOutcome outcome;
  Tensor own, out, reference;
};
Replaced replace(const GridSampleCase& c, bool wild, const PassOptions& options = {}) {
  Model model = opset_19(c);
  const TensorMap inputs = {{"value", ramp(c.value_shape())}, {"grid", probe_grid(c, wild)}};
  Replaced made;
  made.own = run_on_cpu(model, inputs).at("y");
  made.outcome = run_pass(model, kPass, options);
  made.out = run_on_cpu(model, inputs).at("y");
  made.reference = reference_of(c, inputs.at("value"), inputs.at("grid"));
  return made;
}

// Coordinates of up to 40 pixels: in float32 4 roundings to the pixel, 2 more to the offset and
// back; two axes, values within 1.
constexpr double kTolerance = 2 * 2 * 12 * 40 * 0x1p-24;

TEST(ReplaceGridSampleDeformConv, TheSameLatticeAndWholeStrides) {
  for (const bool align : {false, true})
    for (const std::int64_t stride : {1, 2, 3}) {
      GridSampleCase c = roomy({});
      c.align_corners = align;
      c.height = (c.out_height - 1) * stride + 1;
      c.width = c.out_width * stride;
      const Replaced made = replace(c, true), inside = replace(c, false);
      ASSERT_EQ(made.outcome.applied, 1) << first_reason(made.outcome);
      EXPECT_THAT(made.outcome.sites[0].what,
                  HasSubstr(fmt::format("stride {} x {}", stride, stride)));
      // Up to 99 pixels here.
      EXPECT_LE(largest_difference(made.reference, made.out), 2.5 * kTolerance) << c.text();
      EXPECT_LE(largest_difference(inside.own, inside.out), 2.5 * kTolerance) << c.text();
    }
}

TEST(ReplaceGridSampleDeformConv, PaddingWhereItIsAllowed) {
  GridSampleCase c = roomy({});
  Replaced made = replace(c, true);
  EXPECT_EQ(made.outcome.applied, 0);
  EXPECT_THAT(first_reason(made.outcome),
              AllOf(HasSubstr("no stride takes 5 x 7 pixels to 31 x 33"),
                    HasSubstr("padding of 26 rows below and 26 columns")));
  made = replace(c, true, {{"padding", "allow"}});
  ASSERT_EQ(made.outcome.applied, 1);
  EXPECT_LE(largest_difference(made.reference, made.out), kTolerance);
  // Fewer rows, of which no stride gives as many: 10 to 7.
  c = sized(c, 10, 33);
  c.out_height = 7;
  made = replace(c, false, {{"padding", "allow"}});
  ASSERT_EQ(made.outcome.applied, 1);
  EXPECT_LE(largest_difference(made.own, made.out), kTolerance);
}

// 300 queries with 4 points of a level of 20 x 20, as a decoder has them: 40 x 30 reaches twice the
// image.
TEST(ReplaceGridSampleDeformConv, PointsThatReachFarAreLaidOutAnew) {
  GridSampleCase c = sized(GridSampleCase(), 20, 20);
  c.out_height = 300;
  c.out_width = 4;
  const Replaced made = replace(c, false, {{"padding", "allow"}});
  ASSERT_EQ(made.outcome.applied, 1) << first_reason(made.outcome);
  EXPECT_THAT(made.outcome.sites[0].what, HasSubstr("300 x 4 points as 20 x 60"));
  EXPECT_LE(largest_difference(made.own, made.out), kTolerance);
  EXPECT_EQ(made.own.shape(), made.out.shape());
}

// The proof on coordinates near 0, where disturbing them shows nothing of their rounding, had
// failed at 2 to 4 times the image's size.
TEST(ReplaceGridSampleDeformConv, WhatIsTakenIsProved) {
  for (const std::int64_t size : {5, 20, 80, 160}) {
    GridSampleCase c = sized(GridSampleCase(), size, size);
    c.batch = 1;
    c.out_height = 4 * size;
    c.out_width = 3;
    const Model before = opset_19(c);
    Model after = before.clone();
    const PassOutcome outcome = run_pass(after, kPass, {{"padding", "allow"}});
    ASSERT_EQ(outcome.applied, 1) << first_reason(outcome);
    Tensor value = ramp(c.value_shape());
    for (std::int64_t i = 0; i < value.size(); ++i) value.mutable_data<float>()[i] *= 100;
    const TensorMap inputs = {{"value", value}, {"grid", probe_grid(c, false)}};
    const PassProof proof = proof_of(kPass, before, after, outcome, inputs);
    EXPECT_EQ(proof.verdict, Verdict::kPass) << size << ": " << first_failure(proof);
  }
}

TEST(ReplaceGridSampleDeformConv, WhatIsTooCoarseIsRefused) {
  GridSampleCase c = sized(GridSampleCase(), 10, 10);
  c.out_height = 8500;
  c.out_width = 4;
  EXPECT_THAT(first_reason(replace(c, false, {{"padding", "allow"}}).outcome),
              AllOf(HasSubstr("its 34000 points, laid out as "),
                    HasSubstr("12.8 times as coarsely as coordinates of an image of 10 x 10")));
}

// The stride of a column of 2^31 pixels was counted up to.
TEST(ReplaceGridSampleDeformConv, AHugeImageTakesNoTime) {
  GridSampleCase c = sized(GridSampleCase(), std::int64_t{1} << 31, 1);
  c.batch = c.channels = c.out_height = c.out_width = 1;
  Model model = opset_19(c);
  const PassOutcome outcome = run_pass(model, kPass);
  ASSERT_EQ(outcome.applied, 1) << first_reason(outcome);
  EXPECT_THAT(outcome.sites[0].what, HasSubstr("stride 2147483648 x 1"));
}

TEST(ReplaceGridSampleDeformConv, EveryChannelKeepsToItself) {
  GridSampleCase c;
  c.batch = 1, c.channels = 2, c.height = 2, c.width = 2, c.out_height = 2, c.out_width = 2;
  Model model = opset_19(c);
  ASSERT_EQ(run_pass(model, kPass).applied, 1);
  Tensor grid(DType::kFloat32, c.grid_shape());
  const double at[] = {1, 0, -4, 0, 1, 1, 0.5, 9};  // (x, y)
  for (int i = 0; i < 8; ++i) grid.mutable_data<float>()[i] = grid_coordinate(at[i], 2, false);
  const float nan = std::nanf("");
  const Tensor value =
      Tensor::from<float>(DType::kFloat32, c.value_shape(), {3, 5, 7, 9, nan, nan, nan, nan});
  const Tensor y = run_on_cpu(model, {{"value", value}, {"grid", grid}}).at("y");
  EXPECT_FLOAT_EQ(y.data<float>()[0], 5);
  EXPECT_EQ(y.data<float>()[1], 0);
  EXPECT_FLOAT_EQ(y.data<float>()[2], 9);
  EXPECT_EQ(y.data<float>()[3], 0);
  EXPECT_TRUE(std::isnan(y.data<float>()[4]));
}

TEST(ReplaceGridSampleDeformConv, RefusesWithReason) {
  GridSampleCase c = sized(GridSampleCase(), 6, 11);
  Model model = c.model();
  EXPECT_THAT(first_reason(run_pass(model, kPass)), HasSubstr("opset 19"));
  c.mode = "nearest";
  EXPECT_THAT(first_reason(replace(c, false).outcome), HasSubstr("its mode is nearest"));
  c.mode = "bilinear";
  c.padding = "border";
  EXPECT_THAT(first_reason(replace(c, false).outcome), HasSubstr("its padding is border"));
  const std::vector<std::string> names = {kPass};
  EXPECT_THAT(run_passes(model, names, {{"replace_grid_sample_deform_conv.padding", "much"}})
                  .status()
                  .message(),
              HasSubstr("padding must be none or allow, got 'much'"));
}

}  // namespace
}  // namespace tenonnx
