// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "passes/peak_memory.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kRows = 37, kColumns = 11;

Model model_of(const std::string& attributes = "") {
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 20]> g (float[2,3,6,7] value, float[2,{0},{1},2] "
      "grid) => (float[2,3,{0},{1}] y) {{ y = GridSample {2} (value, grid) }}",
      kRows, kColumns, attributes));
}

TensorMap inputs() {
  Tensor grid = ramp({2, kRows, kColumns, 2});
  // Outside too.
  for (std::int64_t i = 0; i < grid.size(); ++i) grid.mutable_data<float>()[i] *= 1.3F;
  return {{"value", ramp({2, 3, 6, 7})}, {"grid", grid}};
}

// Of the graph as a runtime without GridSample has it.
std::int64_t peak_as_gather(const Model& model) {
  Model form = model.clone();
  EXPECT_GT(run_pass(form, "replace_grid_sample_gather").applied, 0);
  const auto peak = peak_memory(form);
  EXPECT_TRUE(peak.has_value());
  // The value and the grid.
  return (peak ? peak->bytes : 0) + 4 * (2 * 3 * 6 * 7 + 2 * kRows * kColumns * 2);
}

TEST(TileGridSample, MakesPartsThatFit) {
  const Model before = model_of();
  const std::int64_t whole = peak_as_gather(before);
  for (const std::int64_t memory : {whole - 1, whole * 2 / 3}) {
    Model after = before.clone();
    const PassOutcome outcome =
        run_pass(after, "tile_grid_sample", {{"memory", fmt::format("{}", memory)}});
    ASSERT_EQ(outcome.applied, 1);
    EXPECT_THAT(outcome.sites[0].what, HasSubstr(fmt::format("would need {} bytes", whole)));
    EXPECT_GE(op_counts(after)["GridSample"], 2);
    EXPECT_LE(peak_as_gather(after), memory);
    expect_identical(run_on_cpu(before, inputs()), run_on_cpu(after, inputs()));
  }
}

TEST(TileGridSample, LeavesWhatFits) {
  Model model = model_of();
  const std::int64_t whole = peak_as_gather(model);
  const PassOutcome outcome =
      run_pass(model, "tile_grid_sample", {{"memory", fmt::format("{}", whole)}});
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_EQ(outcome.skipped.size(), 0U);
}

TEST(TileGridSample, EveryPaddingStaysTheSame) {
  for (const char* padding : {"zeros", "border", "reflection"}) {
    const Model before =
        model_of(fmt::format("<padding_mode = \"{}\", align_corners = 1>", padding));
    Model after = before.clone();
    const std::int64_t whole = peak_as_gather(before);
    ASSERT_EQ(
        run_pass(after, "tile_grid_sample", {{"memory", fmt::format("{}", whole - 1)}}).applied, 1)
        << padding;
    expect_identical(run_on_cpu(before, inputs()), run_on_cpu(after, inputs()));
  }
}

// Of one read for each point the whole that Concat makes of the parts may be more than is saved: a
// byte less than the whole form needs is reached, or it is said that it is not.
TEST(TileGridSample, OfNearestEitherFitsOrSaysThatItDoesNot) {
  for (const char* padding : {"zeros", "border", "reflection"}) {
    const Model before =
        model_of(fmt::format("<mode = \"nearest\", padding_mode = \"{}\">", padding));
    Model after = before.clone();
    const std::int64_t memory = peak_as_gather(before) - 1;
    const PassOutcome outcome =
        run_pass(after, "tile_grid_sample", {{"memory", fmt::format("{}", memory)}});
    expect_identical(run_on_cpu(before, inputs()), run_on_cpu(after, inputs()));
    if (outcome.applied > 0) {
      EXPECT_LE(peak_as_gather(after), memory) << padding;
    } else {
      ASSERT_EQ(outcome.skipped.size(), 1U) << padding;
      EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("in whatever number of parts"));
    }
  }
}

TEST(TileGridSample, RefusesWhatNeverFitsAndWhatTheFormDoesNotTake) {
  Model model = model_of();
  PassOutcome outcome = run_pass(model, "tile_grid_sample", {{"memory", "100"}});
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("in whatever number of parts"));
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("option memory has 100"));
  // Not "none needs ... bytes", which reads as if nothing needed them.
  outcome = run_pass(model, "tile_grid_sample", {{"memory", "100"}, {"form", "none"}});
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, testing::StartsWith("GridSample itself needs "));
  Model cubic = model_of("<mode = \"cubic\">");
  outcome = run_pass(cubic, "tile_grid_sample", {{"memory", "100"}});
  ASSERT_EQ(outcome.skipped.size(), 1U);
  EXPECT_THAT(outcome.skipped[0].reason, HasSubstr("replace_grid_sample_gather does not take it"));
}

// One level of an encoder's attention at 640 px: 8,400 queries of 4 points, 8 heads of 32 channels.
TEST(TileGridSample, OfAnEncodersSize) {
  constexpr const char* kText = R"(<ir_version: 8, opset_import: ["" : 20]>
    g (float[8,32,80,80] value, float[8,8400,4,2] grid) => (float[8,32,8400,4] y)
      { y = GridSample (value, grid) })";
  constexpr std::int64_t kInputs = 4 * (8 * 32 * 80 * 80 + 8 * 8400 * 4 * 2);
  constexpr std::int64_t kMemory = 100'000'000;
  const auto gathered = [](const Model& model) {
    Model form = model.clone();
    EXPECT_GT(run_pass(form, "replace_grid_sample_gather").applied, 0);
    const auto peak = peak_memory(form);
    return (peak ? peak->bytes : 0) + kInputs;
  };
  const Model before = model_from_text(kText);
  ASSERT_GT(gathered(before), kMemory);
  Model after = before.clone();
  ASSERT_EQ(run_pass(after, "tile_grid_sample", {{"memory", fmt::format("{}", kMemory)}}).applied,
            1);
  EXPECT_LE(gathered(after), kMemory);
  const TensorMap values = {{"value", ramp({8, 32, 80, 80})}, {"grid", ramp({8, 8400, 4, 2})}};
  expect_identical(run_on_cpu(before, values), run_on_cpu(after, values));
}

std::string error_of(const PassOptions& options) {
  Model model = model_of();
  PassOptions prefixed;
  for (const auto& [key, value] : options) prefixed["tile_grid_sample." + key] = value;
  const std::vector<std::string> names = {"tile_grid_sample"};
  const auto reports = run_passes(model, names, prefixed);
  return reports.ok() ? "" : reports.status().message();
}

TEST(TileGridSample, NeedsToKnowTheMemory) {
  EXPECT_THAT(error_of({}), HasSubstr("one of the two"));
  EXPECT_THAT(error_of({{"device", "simnpu"}, {"memory", "7"}}), HasSubstr("one of the two"));
  EXPECT_THAT(error_of({{"device", "htp-v73"}}), HasSubstr("says nothing of the device's memory"));
  EXPECT_THAT(error_of({{"memory", "lots"}}), HasSubstr("whole number"));
  EXPECT_THAT(error_of({{"memory", "7"}, {"form", "fuse_gelu"}}),
              HasSubstr("'fuse_gelu' is no pass that replaces GridSample"));
  EXPECT_EQ(error_of({{"device", "simnpu"}}), "");
}

}  // namespace
}  // namespace tenonnx
