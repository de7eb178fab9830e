// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>

#include "flow/compare_for_test.h"
#include "numerics/suspects.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

KindFinding between(const std::string& right, const std::string& wrong) {
  return graph_difference(parse_model(right), parse_model(wrong));
}

constexpr const char* kSampled = R"(<ir_version: 10, opset_import: ["" : 20]>
g (float[1, 2, 4, 4] x, float[1, 3, 1, 2] grid) => (float[1, 2, 3, 1] y) {
  y = GridSample <mode = "linear"> (x, grid)
})";

TEST(GraphDifference, TheSameGraphHasNone) { EXPECT_EQ(between(kSampled, kSampled).text, ""); }

// Gathered rows come with Transposes and Casts, which alone are a layout or a precision.
TEST(GraphDifference, WhatIsWrittenInPlaceOfAGridSampleIsSampling) {
  const KindFinding found = between(kSampled, R"(<ir_version: 10, opset_import: ["" : 20]>
g (float[1, 2, 4, 4] x, float[1, 3, 1, 2] grid) => (float[1, 2, 3, 1] y)
<int64[3] rows = {1, 16, 2}, int64[2] at = {1, 3}, int64[1] one = {1}, int64[4] out = {1, 2, 3, 1}> {
  t = Transpose <perm = [0, 2, 3, 1]> (x)
  r = Reshape (t, rows)
  c = ReduceSum <keepdims = 0> (grid, one)
  f = Reshape (c, at)
  i = Cast <to = 7> (f)
  k = Gather <axis = 1> (r, i)
  p = Transpose <perm = [0, 3, 2, 1]> (k)
  y = Reshape (p, out)
})");
  EXPECT_EQ(found.kind, FaultKind::kSampling);
  EXPECT_THAT(found.text, HasSubstr("1 GridSample fewer"));
}

TEST(GraphDifference, ATransposeMoreIsALayout) {
  const KindFinding found = between(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 4] x) => (float[4, 4] y) { y = Tanh(x) })",
                                    R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 4] x) => (float[4, 4] y) { t = Transpose <perm = [1, 0]> (x) y = Tanh(t) })");
  EXPECT_EQ(found.kind, FaultKind::kLayout);
  EXPECT_THAT(found.text, HasSubstr("1 Transpose more"));
}

TEST(GraphDifference, AnAttributeIsNamedWithBothValues) {
  const KindFinding found = between(kSampled, R"(<ir_version: 10, opset_import: ["" : 20]>
g (float[1, 2, 4, 4] x, float[1, 3, 1, 2] grid) => (float[1, 2, 3, 1] y) {
  y = GridSample <mode = "nearest"> (x, grid)
})");
  EXPECT_EQ(found.kind, FaultKind::kSampling);
  EXPECT_THAT(found.text, HasSubstr("'mode' of GridSample is nearest, in the reference linear"));
}

}  // namespace
}  // namespace tenonnx
