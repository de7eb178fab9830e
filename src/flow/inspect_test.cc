// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

constexpr const char* kExample = TENONNX_TEST_SOURCE_DIR "/examples/models/shapes_deimv2.onnx";

// The raw export has no shapes at its sampling sites; folding its shape subgraphs shows them. 4
// decoder layers by 3 levels of 20, 10 and 5 squared; 16 channels a head.
TEST(Inspect, ShowsTheSamplingSitesOfTheExampleWithTheirShapes) {
  const Result<InspectReport> report = inspect_file(kExample);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->found.grid_samples.size(), 12U);
  EXPECT_EQ(report->found.grid_samples[0].input.shape, (Shape{4, 16, 20, 20}));
  EXPECT_EQ(report->found.grid_samples[1].grid.shape, (Shape{4, 100, 6, 2}));
  EXPECT_EQ(report->found.grid_samples[2].input.shape, (Shape{4, 16, 5, 5}));
  EXPECT_EQ(report->found.selections.size(), 3U);
  EXPECT_EQ(report->found.nodes, 3548);
  ASSERT_TRUE(report->nodes_after_folding.has_value());
  EXPECT_LT(*report->nodes_after_folding, 1774);  // less than half: the rest is shape arithmetic

  const std::string text = describe(*report);
  EXPECT_THAT(text, HasSubstr("GridSample sites: 12"));
  EXPECT_THAT(text, HasSubstr("boxes: float32 [1,300,4]"));
  const Json json = to_json(*report);
  EXPECT_EQ(json["grid_samples"].size(), 12U);
  EXPECT_EQ(json["operators"]["GridSample"], 12);
}

TEST(Inspect, ReportsWhatIsNotThere) {
  const Result<InspectReport> report = inspect_file("no/such/model.onnx");
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(report.status().message(), HasSubstr("no/such/model.onnx"));
}

}  // namespace
}  // namespace tenonnx
