// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/gather_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "passes/fusion_test_support.h"

namespace tenonnx {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kPass = "replace_ms_deform_attn";

// y = x[int(p)], the coordinate p rounded by `rounding` first, clamped into 0..5.
Model reading(const std::string& rounding, const std::string& gather = "Gather <axis = 1>") {
  const std::string before = rounding.empty() ? "Identity" : rounding;
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[4,6] x, float[4,6] p) => (float y) "
      "<int64 zero = {{0}}, int64 most = {{5}}, int64[2] shape = {{4, 6}}> "
      "{{ h = Add (p, p) q = {} (h) i = Cast <to = 7> (q) c = Clip (i, zero, most) "
      "j = Reshape (c, shape) y = {} (x, j) }}",
      before, gather));
}

std::string reason(const Model& original) {
  Model model = original.clone();
  const PassOutcome outcome = run_pass(model, kPass);
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_EQ(op_types(model), op_types(original));
  EXPECT_THAT(outcome.skipped, SizeIs(1));
  return outcome.skipped.empty() ? "" : outcome.skipped[0].reason;
}

TEST(GatherSampling, IsReportedAsANearMiss) {
  EXPECT_THAT(reason(reading("")), HasSubstr("int(coordinate), as \"discrete\" models do"));
  EXPECT_THAT(reason(reading("Round")), HasSubstr("the pixel nearest to a coordinate"));
  EXPECT_THAT(reason(reading("Floor")), HasSubstr("floor(coordinate), as bilinear sampling does"));
  EXPECT_THAT(reason(reading("Floor", "GatherElements <axis = 1>")), HasSubstr("with Gather"));
}

// What detectors gather besides: rows that TopK selected, sizes, embeddings at constant indices.
TEST(GatherSampling, OtherGathersAreNot) {
  Model model = model_from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1,9,4] boxes, float[1,9] scores) "
      "=> (float a, float b, float c) <int64[1] k = {3}, int64[2] two = {0, 1}, "
      "float[1] half = {0.5}, int64 one = {1}> "
      "{ v, i = TopK (scores, k) a = Gather <axis = 1> (boxes, i) b = Gather <axis = 1> (boxes, "
      "two) "
      "s = Shape (boxes) d = Gather (s, one) f = Cast <to = 1> (d) h = Mul (f, half) "
      "w = Cast <to = 7> (h) c = Gather <axis = 1> (boxes, w) }");
  EXPECT_THAT(run_pass(model, kPass).skipped, IsEmpty());
}

TEST(GatherSampling, TheExampleHasNone) {
  Model model = folded_example();
  EXPECT_THAT(run_pass(model, kPass).skipped, IsEmpty());
}

}  // namespace
}  // namespace tenonnx
