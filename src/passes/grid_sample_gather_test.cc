// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/grid_sample_gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/temporary_directory.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

GridSampleNode site(std::int64_t batch, std::int64_t height, std::int64_t width) {
  GridSampleNode s;
  s.value = "feature";
  s.grid = "points";
  s.batch = batch;
  s.channels = 32;
  s.height = height;
  s.width = width;
  s.out_height = 300;
  s.out_width = 4;
  return s;
}

GatherOptions with(const PassOptions& options) {
  auto read = gather_options("p", options);
  EXPECT_TRUE(read.ok()) << read.status().message();
  return read.ok() ? *read : GatherOptions();
}

// "rows", "elements", "two_axis", or why there is no plan.
std::string plan(const GridSampleNode& s, const PassOptions& options, std::int64_t pad = 0) {
  GatherPlan made;
  const std::string why = plan_gather(s, with(options), pad, made);
  return why.empty() ? std::string(to_string(made.form)) : why;
}

// The largest index of each form against what the arithmetic counts to: on either side of the
// bound.
TEST(PlanGather, TheFormFollowsFromTheIndexArithmetic) {
  const PassOptions half = {{"index_arithmetic", "float16"}};
  EXPECT_EQ(plan(site(1, 80, 80), {}), "rows");
  EXPECT_EQ(plan(site(1, 80, 80), {{"index_arithmetic", "float32"}}), "rows");
  EXPECT_EQ(plan(site(1, 40, 40), half), "rows");         // 1,599
  EXPECT_EQ(plan(site(8, 16, 16), half), "rows");         // 2,047
  EXPECT_EQ(plan(site(3, 1, 683), half), "rows");         // 2,048: the last that is exact
  EXPECT_EQ(plan(site(10, 1, 205), half), "elements");    // 2,049
  EXPECT_EQ(plan(site(8, 40, 40), half), "elements");     // 12,799 and 1,599
  EXPECT_EQ(plan(site(1, 80, 80), half), "two_axis");     // 6,399
  EXPECT_EQ(plan(site(8, 45, 45), half, 1), "two_axis");  // 47 x 47 = 2,209 with the border
  const PassOptions brain = {{"index_arithmetic", "bfloat16"}};
  EXPECT_EQ(plan(site(1, 16, 16), brain), "rows");
  EXPECT_EQ(plan(site(1, 80, 80), brain), "two_axis");
  EXPECT_EQ(plan(site(1, 256, 256), brain), "two_axis");
  EXPECT_EQ(plan(site(1 << 12, 1 << 10, 1 << 10), {}), "elements");  // 2^32 of all images
}

TEST(PlanGather, WhereNoneIsExactItSaysWhichIndexAndBound) {
  EXPECT_THAT(plan(site(1, 160, 300), {{"index_arithmetic", "bfloat16"}}),
              AllOf(HasSubstr("no form is exact"), HasSubstr("coordinate 300 is beyond 256"),
                    HasSubstr("bfloat16"), HasSubstr("index_arithmetic=bfloat16")));
  EXPECT_THAT(plan(site(1, 80, 80), {{"index_arithmetic", "float16"}, {"form", "rows"}}),
              AllOf(HasSubstr("rows: index 6399 is beyond 2048, to which float16 counts exactly")));
  // A border makes the side longer.
  EXPECT_EQ(plan(site(1, 256, 256), {{"index_arithmetic", "bfloat16"}}), "two_axis");
  EXPECT_THAT(plan(site(1, 256, 256), {{"index_arithmetic", "bfloat16"}}, 1),
              HasSubstr("coordinate 258 is beyond 256"));
}

TEST(GatherOptions, ADeviceFileSaysIt) {
  // Of indices it says nothing: those of a device that stores float16 are taken for float16.
  const GatherOptions device = with({{"device", "htp-v73"}});
  EXPECT_EQ(device.indices, DType::kFloat16);
  EXPECT_EQ(device.coordinates, DType::kFloat16);
  EXPECT_THAT(device.origin, AllOf(HasSubstr("'htp-v73'"), HasSubstr("storage type")));
  EXPECT_EQ(plan(site(1, 80, 80), {{"device", "htp-v73"}}), "two_axis");
}

TEST(GatherOptions, TheIndexArithmeticOfTheFileCounts) {
  const TemporaryDirectory directory;
  auto json =
      read_json_file(std::filesystem::path(TENONNX_TEST_SOURCE_DIR) / "devices/htp-v73.json");
  ASSERT_TRUE(json.ok()) << json.status().message();
  (*json)["name"] = "whole-numbers";
  (*json)["arithmetic"]["indices"] = {
      {"value", "int32"}, {"source", "a test"}, {"checked", "2026-11"}};
  std::ofstream(directory.path() / "whole-numbers.json") << json->dump();
  ASSERT_EQ(setenv("TENONNX_DEVICES", directory.path().c_str(), 1), 0);
  const GatherOptions device = with({{"device", "whole-numbers"}});
  unsetenv("TENONNX_DEVICES");
  EXPECT_EQ(device.indices, DType::kInt32);
  EXPECT_THAT(device.origin, HasSubstr("its index arithmetic"));
  GatherPlan made;
  EXPECT_EQ(plan_gather(site(1, 80, 80), device, 0, made), "");
  EXPECT_EQ(made.form, GatherForm::kRows);
  // Its coordinates are float16 all the same.
  EXPECT_THAT(plan_gather(site(1, 8, 2100), device, 0, made),
              AllOf(HasSubstr("coordinate 2100 is beyond 2048"), HasSubstr("float16")));
}

TEST(GatherPlan, ADeviceMayTakeConstantIndicesAlone) {
  GatherPlan made;
  const std::string why = plan_gather(site(1, 20, 20), with({{"device", "simnpu"}}), 0, made);
  EXPECT_THAT(why, AllOf(HasSubstr("device 'simnpu' takes Gather with constant indices alone "
                                   "(simnpu.json, supported)"),
                         HasSubstr("replace_grid_sample_deform_conv")));
}

}  // namespace
}  // namespace tenonnx
