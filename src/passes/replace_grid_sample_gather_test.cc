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

constexpr const char* kPass = "replace_grid_sample_gather";

// The output of the node and of what stands in its place.
struct Outputs {
  Tensor own, replaced;
};
Outputs both(const GridSampleCase& c, const PassOptions& options, const TensorMap& inputs) {
  Model model = c.model();
  const Tensor own = run_on_cpu(model, inputs).at("y");
  const PassOutcome outcome = run_pass(model, kPass, options);
  EXPECT_EQ(outcome.applied, 1) << c.text() << ": " << first_reason(outcome);
  EXPECT_EQ(op_counts(model).count("GridSample"), 0u);
  return {own, run_on_cpu(model, inputs).at("y")};
}

std::vector<GridSampleCase> all_cases() {
  std::vector<GridSampleCase> cases;
  for (const char* mode : {"bilinear", "nearest"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const bool align : {false, true}) {
        GridSampleCase c = roomy({});
        c.mode = mode;
        c.padding = padding;
        c.align_corners = align;
        cases.push_back(c);
      }
  return cases;
}

// A weight is a difference of coordinates of up to 8 pixels, each rounded three times (4 units of
// 2^-22 at most), and values are within 1: four taps of two weights each.
constexpr double kReferenceTolerance = 4 * 2 * 4 * 0x1p-22;

// Nearest takes the pixel on either side of a tie, which the float32 coordinate decides: the
// reference, in double, may take the other.
TEST(ReplaceGridSampleGather, EveryModeAndPaddingAgreesWithTheReference) {
  for (const GridSampleCase& c : all_cases()) {
    if (c.mode == "nearest") continue;
    const TensorMap inputs = {{"value", ramp(c.value_shape())}, {"grid", probe_grid(c, true)}};
    const Tensor expected = reference_of(c, inputs.at("value"), inputs.at("grid"));
    for (const char* form : {"rows", "elements", "two_axis"})
      for (const char* weights : {"product", "nested"})
        for (const char* zeros : {"select", "multiply", "border"}) {
          const Outputs out =
              both(c, {{"form", form}, {"weights", weights}, {"zeros", zeros}}, inputs);
          // Of a reflection far outside float32 knows the pixel no longer.
          if (c.padding == "reflection") continue;
          EXPECT_LE(largest_difference(out.replaced, expected), kReferenceTolerance)
              << c.text() << " " << form << " " << weights << " " << zeros;
        }
  }
}

TEST(ReplaceGridSampleGather, ReflectionAgreesWithTheReference) {
  for (const bool align : {false, true}) {
    GridSampleCase c = roomy({});
    c.padding = "reflection";
    c.align_corners = align;
    const TensorMap inputs = {{"value", ramp(c.value_shape())}, {"grid", probe_grid(c, false)}};
    const Tensor expected = reference_of(c, inputs.at("value"), inputs.at("grid"));
    EXPECT_LE(largest_difference(both(c, {}, inputs).replaced, expected), kReferenceTolerance)
        << c.text();
  }
}

// Class and claim of the head: these, and no others, have ONNX Runtime's own bits.
TEST(ReplaceGridSampleGather, HasTheBitsOfOnnxRuntimeWhereItSaysSo) {
  for (const GridSampleCase& c : all_cases()) {
    const TensorMap inputs = {{"value", ramp(c.value_shape())}, {"grid", probe_grid(c, false)}};
    for (const char* form : {"rows", "elements", "two_axis"})
      for (const char* zeros : {"select", "multiply", "border"}) {
        std::int64_t different[2];
        for (const bool nested : {false, true}) {
          const Outputs out = both(
              c, {{"form", form}, {"weights", nested ? "nested" : "product"}, {"zeros", zeros}},
              inputs);
          different[nested] = different_bits(out.own, out.replaced);
          EXPECT_LE(largest_difference(out.own, out.replaced), kReferenceTolerance) << c.text();
        }
        const std::string what = c.text() + " " + form + " " + zeros;
        if (c.mode == "nearest") {
          EXPECT_EQ(different[0], 0) << what;
        } else if (c.padding == "zeros") {
          EXPECT_EQ(different[c.align_corners ? 1 : 0], 0) << what;
          EXPECT_GT(different[c.align_corners ? 0 : 1], 0) << what;
        }
      }
  }
}

TEST(ReplaceGridSampleGather, WhateverTheGridHoldsNothingLeavesTheTensor) {
  for (GridSampleCase c : all_cases()) {
    for (const std::int64_t size : {1, 2}) {
      c.height = size;
      c.width = 3 - size;
      const TensorMap inputs = {{"value", ramp(c.value_shape())}, {"grid", probe_grid(c, true)}};
      for (const char* form : {"rows", "elements", "two_axis"})
        for (const char* zeros : {"select", "multiply", "border"}) {
          // The run fails where an index is outside.
          const Tensor out = both(c, {{"form", form}, {"zeros", zeros}}, inputs).replaced;
          for (std::int64_t i = 0; i < out.size(); ++i)
            ASSERT_LE(std::abs(out.data<float>()[i]), 1.0F) << c.text() << " " << form;
        }
    }
  }
}

}  // namespace
}  // namespace tenonnx
