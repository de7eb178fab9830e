// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "passes/fusion_test_support.h"
#include "passes/grid_sample_test_support.h"
#include "passes/static_grid_test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kPass = "fold_static_grid";
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<GridSampleCase> all_cases() {
  std::vector<GridSampleCase> cases;
  for (const char* mode : {"bilinear", "nearest"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const bool align : {false, true})
        for (const std::int64_t batch : {1, 3}) {
          GridSampleCase c = roomy({});
          c.mode = mode;
          c.padding = padding;
          c.align_corners = align;
          c.batch = batch;
          cases.push_back(c);
        }
  return cases;
}

// As in replace_grid_sample_gather_test.cc: coordinates of up to 8 pixels are rounded to units of
// 2^-22 four times, values are within 1, four taps of two weights each.
constexpr double kTolerance = 4 * 2 * 4 * 0x1p-22;

TEST(FoldStaticGrid, EveryFormAgreesWithTheReference) {
  for (const GridSampleCase& c : all_cases())
    for (const char* form : {"rows", "columns", "operator", "auto"}) {
      SCOPED_TRACE(c.text() + " " + form);
      const Tensor grid = probe_grid(c, true);
      Model model = stored_grid_model(c, grid);
      const TensorMap inputs = {{"value", ramp(c.value_shape())}};
      const PassOutcome outcome = run_pass(model, kPass, {{"form", form}});
      if (std::string(form) == "columns" && c.batch > 1) {
        EXPECT_EQ(outcome.applied, 0);
        EXPECT_THAT(first_reason(outcome), HasSubstr("one grid for all images"));
        continue;
      }
      ASSERT_EQ(outcome.applied, 1) << first_reason(outcome);
      EXPECT_EQ(op_counts(model).count("GridSample"), 0U);
      const Tensor out = run_on_cpu(model, inputs).at("y");
      if (c.mode == "bilinear" && c.padding != "reflection") {
        EXPECT_LE(largest_difference(reference_of(c, inputs.at("value"), grid), out), kTolerance);
      }
    }
}

// Coordinates that are no number, or so far outside that float32 knows no pixel, are defined by the
// reference; ONNX Runtime's own result of them is left to chance.
TEST(FoldStaticGrid, BitForBitOnnxRuntimesOwnWhereItSaysSo) {
  for (const GridSampleCase& c : all_cases())
    for (const char* form : {"rows", "columns", "auto", "operator"}) {
      if (std::string(form) == "columns" && c.batch > 1) continue;
      SCOPED_TRACE(c.text() + " " + form);
      Model model = stored_grid_model(c, probe_grid(c, false));
      const TensorMap inputs = {{"value", ramp(c.value_shape())}};
      const Tensor own = run_on_cpu(model, inputs).at("y");
      ASSERT_EQ(run_pass(model, kPass, {{"form", form}}).applied, 1);
      const Tensor out = run_on_cpu(model, inputs).at("y");
      const bool same_sums =
          c.padding == "zeros" && !c.align_corners && std::string(form) != "operator";
      if (c.mode == "nearest" || same_sums) {
        EXPECT_EQ(different_bits(own, out), 0);
      }
      EXPECT_LE(largest_difference(own, out), kTolerance);
    }
}

// One point on pixel (1, 0), one between (0, 1) and (1, 1), one outside.
TEST(FoldStaticGrid, WhatIsNotSampledDoesNotReachTheOutput) {
  GridSampleCase c;
  c.batch = 1, c.channels = 1, c.height = 2, c.width = 3, c.out_height = 1, c.out_width = 3;
  Tensor grid(DType::kFloat32, c.grid_shape());
  const double at[] = {1, 0, 0.5, 1, -3, 1};
  for (int i = 0; i < 6; ++i)
    grid.mutable_data<float>()[i] = grid_coordinate(at[i], i % 2 == 0 ? 3 : 2, false);
  for (const char* form : {"rows", "columns", "operator"}) {
    Model model = stored_grid_model(c, grid);
    ASSERT_EQ(run_pass(model, kPass, {{"form", form}}).applied, 1);
    const Tensor value = Tensor::from<float>(DType::kFloat32, c.value_shape(),
                                             {kInf, 5, std::nanf(""), 1, 2, std::nanf("")});
    const Tensor y = run_on_cpu(model, {{"value", value}}).at("y");
    EXPECT_FLOAT_EQ(y.data<float>()[0], 5) << form;
    EXPECT_FLOAT_EQ(y.data<float>()[1], 1.5F) << form;
    EXPECT_EQ(y.data<float>()[2], 0) << form;
  }
}

TEST(FoldStaticGrid, NoZerosWhereEverythingIsSampled) {
  GridSampleCase c;
  c.batch = 1, c.out_height = 3, c.out_width = 2;
  Tensor grid(DType::kFloat32, c.grid_shape());
  for (int i = 0; i < grid.size(); ++i) grid.mutable_data<float>()[i] = 0.01F * float(i + 1);
  Model model = stored_grid_model(c, grid);
  ASSERT_EQ(run_pass(model, kPass, {{"form", "columns"}}).applied, 1);
  EXPECT_THAT(op_types(model),
              ElementsAre("Reshape", "Gather", "Mul", "Gather", "Mul", "Add", "Gather", "Mul",
                          "Add", "Gather", "Mul", "Add", "Reshape"));
}

TEST(FoldStaticGrid, AffineGridAndOtherComputedGrids) {
  Model model = model_from_text(R"(<ir_version: 9, opset_import: ["" : 20]>
    g (float[1,4,6,8] value) => (float[1,4,5,7] y, float[1,4,5,7] z)
      <float[1,2,3] theta = {0.5, 0.1, 0.05, -0.1, 0.6, 0.02}, int64[4] size = {1,4,5,7},
       float half = {0.5}> {
      grid = AffineGrid <align_corners = 0> (theta, size)
      y = GridSample (value, grid)
      scaled = Mul (grid, half)
      z = GridSample <mode = "nearest", padding_mode = "border"> (value, scaled)
    })");
  const TensorMap inputs = {{"value", ramp({1, 4, 6, 8})}};
  const TensorMap own = run_on_cpu(model, inputs);
  const PassOutcome outcome = run_pass(model, kPass);
  EXPECT_EQ(outcome.applied, 2) << first_reason(outcome);
  ASSERT_EQ(outcome.sites.size(), 2U);
  EXPECT_THAT(outcome.sites[0].what, HasSubstr("35 points of 6 x 8 pixels"));
  EXPECT_EQ(op_counts(model).count("AffineGrid"), 0U);
  const TensorMap out = run_on_cpu(model, inputs);
  EXPECT_EQ(different_bits(own.at("y"), out.at("y")), 0);
  EXPECT_EQ(different_bits(own.at("z"), out.at("z")), 0);
}

// c = points * R^T + t; u, v = c.xy / c.z; grid = (u, v) * scale + shift: a camera in the graph.
TEST(FoldStaticGrid, AProjectionWithStoredMatrices) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4,6,8] value) => (float[1,4,2,3] y)
      <float[6,3] points = {4,1,0, 4,0,0, 4,-1,0, 9,2,0, 9,0,0, 9,-2,0},
       float[3,3] turn = {0,0,1, -1,0,0, 0,-1,0}, float[3] t = {0, 1.5, 0},
       int64[2] parts = {2,1}, float[2] scale = {1.6, 1.9}, float[2] shift = {0.01, -0.2},
       int64[4] shape = {1,2,3,2}> {
      turned = MatMul (points, turn)
      camera = Add (turned, t)
      xy, z = Split <axis = 1> (camera, parts)
      image = Div (xy, z)
      scaled = Mul (image, scale)
      flat = Add (scaled, shift)
      grid = Reshape (flat, shape)
      y = GridSample (value, grid)
    })");
  const TensorMap inputs = {{"value", ramp({1, 4, 6, 8})}};
  const Tensor own = run_on_cpu(model, inputs).at("y");
  const PassOutcome outcome = run_pass(model, kPass);
  ASSERT_EQ(outcome.applied, 1) << first_reason(outcome);
  EXPECT_EQ(op_counts(model).count("Div"), 0U);
  EXPECT_EQ(different_bits(own, run_on_cpu(model, inputs).at("y")), 0);
}

TEST(FoldStaticGrid, SizesFromOnePixelOn) {
  std::mt19937 random(11);
  const auto below = [&](int most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
  };
  for (int k = 0; k < 120; ++k) {
    GridSampleCase c;
    c.batch = 1 + below(3), c.channels = 1 + below(5);
    c.height = 1 + below(6), c.width = 1 + below(6);
    c.out_height = 1 + below(9), c.out_width = 1 + below(9);
    c.padding = below(2) == 0 ? "zeros" : "border";
    c.align_corners = below(2) == 0;
    SCOPED_TRACE(c.text());
    const Tensor grid = probe_grid(c, below(2) == 0);
    Model model = stored_grid_model(c, grid);
    const TensorMap inputs = {{"value", ramp(c.value_shape())}};
    const char* form = below(2) == 0 ? "rows" : "operator";
    ASSERT_EQ(run_pass(model, kPass, {{"form", form}}).applied, 1);
    EXPECT_LE(largest_difference(reference_of(c, inputs.at("value"), grid),
                                 run_on_cpu(model, inputs).at("y")),
              kTolerance);
  }
}

TEST(FoldStaticGrid, ImagesMayShareOneGrid) {
  GridSampleCase c;
  c.batch = 3;
  GridSampleCase one = c;
  one.batch = 1;
  const Tensor first = probe_grid(one, false);
  Tensor grid(DType::kFloat32, c.grid_shape());
  for (std::int64_t i = 0; i < grid.size(); ++i)
    grid.mutable_data<float>()[i] = first.data<float>()[i % first.size()];
  for (const char* form : {"rows", "columns", "operator"}) {
    Model model = stored_grid_model(c, grid);
    const TensorMap inputs = {{"value", ramp(c.value_shape())}};
    const Tensor own = run_on_cpu(model, inputs).at("y");
    const PassOutcome outcome = run_pass(model, kPass, {{"form", form}});
    ASSERT_EQ(outcome.applied, 1) << first_reason(outcome);
    EXPECT_THAT(outcome.sites[0].what, HasSubstr("66 points of"));
    EXPECT_LE(largest_difference(own, run_on_cpu(model, inputs).at("y")), kTolerance) << form;
  }
}

TEST(FoldStaticGrid, RefusesWithNodeAndReason) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4,6,8] value, float[1,3,3,2] moving, float[1,?,6,8] open)
      => (float[1,4,3,3] a, float[1,4,3,3] b, float[1,4,3,3] c, float[1,n,3,3] d)
      <float[1,3,3,2] fixed = {2,2,3,3,0,0, 0,0,0,0,0,0, 0,0,0,0,0,0}> {
      [dependent] a = GridSample (value, moving)
      [cubic] b = GridSample <mode = "bicubic"> (value, fixed)
      noise = RandomNormal <shape = [1,3,3,2]> ()
      [random] c = GridSample (value, noise)
      [channels] d = GridSample (open, fixed)
    })");
  const PassOutcome outcome = run_pass(model, kPass);
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 4U);
  const auto reason = [&](std::size_t i) {
    return outcome.skipped[i].node + ": " + outcome.skipped[i].reason;
  };
  EXPECT_THAT(reason(0), AllOf(HasSubstr("dependent"), HasSubstr("depends on 'moving'")));
  EXPECT_THAT(reason(1), AllOf(HasSubstr("cubic"), HasSubstr("sixteen neighbours")));
  EXPECT_THAT(reason(2), AllOf(HasSubstr("random"), HasSubstr("RandomNormal")));
  EXPECT_THAT(reason(3), AllOf(HasSubstr("channels"), HasSubstr("number of channels of 'open'")));
}

// The operator would not load with it.
TEST(FoldStaticGrid, TheOperatorTakesNoImageOf4MillionRows) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,1,4194304,1] value) => (float[1,1,1,1] y)
      <float[1,1,1,2] fixed = {0,0}> { y = GridSample (value, fixed) })");
  EXPECT_THAT(first_reason(run_pass(model, kPass, {{"form", "operator"}})),
              HasSubstr("StaticSample takes images of less than 2^22 pixels along an axis"));
}

TEST(FoldStaticGrid, RefusesAnUnknownForm) {
  GridSampleCase c;
  Model model = stored_grid_model(c, probe_grid(c, false));
  const std::vector<std::string> names = {kPass};
  const auto outcome = run_passes(model, names, {{"fold_static_grid.form", "diagonal"}});
  EXPECT_THAT(outcome.status().message(),
              HasSubstr("form must be auto, rows, columns or operator, got 'diagonal'"));
}

// A grid behind more constant nodes than a proof goes further up by, which others need too: with
// other values made for the last of them the form failed.
TEST(FoldStaticGrid, AConstantThatIsComputedFarAboveIsNoInput) {
  std::string nodes;
  for (int i = 0; i < 12; ++i) nodes += fmt::format("t{} = Neg (t{}) ", i + 1, i);
  const Model before = model_from_text(
      R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4,6,8] value, float[1,3,3,2] x) => (float[1,4,3,3] y, float[1,3,3,2] z)
      <float[1,3,3,2] t0 = {0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,-0.1,-0.2,-0.3,-0.4,-0.5,-0.6,-0.7,-0.8,-0.9}> {
      )" +
      nodes + "grid = Abs (t12) y = GridSample (value, grid) z = Add (t12, x) }");
  Model after = before.clone();
  const PassOutcome outcome = run_pass(after, kPass);
  ASSERT_EQ(outcome.applied, 1) << first_reason(outcome);
  const TensorMap inputs = {{"value", ramp({1, 4, 6, 8})}, {"x", ramp({1, 3, 3, 2})}};
  const PassProof proof = proof_of(kPass, before, after, outcome, inputs);
  EXPECT_EQ(proof.verdict, Verdict::kPass) << first_failure(proof);
  ASSERT_EQ(proof.sampling.size(), 1U);
  EXPECT_GT(proof.sampling[0].levels.at(0).taps.taps, 0);
}

TEST(FoldStaticGrid, TheOperatorsTypeIsKnownToWhatFollows) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4,6,8] value) => (float[1,4,1,2] z)
      <float[1,1,2,2] fixed = {0.25, 0.5, 0, 0}> {
      y = GridSample (value, fixed)
      z = Relu (y)
    })");
  ASSERT_EQ(run_pass(model, kPass, {{"form", "operator"}}).applied, 1);
  EXPECT_THAT(op_types(model), ElementsAre("StaticSample", "Relu"));
  ASSERT_EQ(model.proto().graph().value_info_size(), 1);
  EXPECT_EQ(model.proto().graph().value_info(0).name(), "y");
}

}  // namespace
}  // namespace tenonnx
