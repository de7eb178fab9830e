// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <onnx/onnx_pb.h>

#include "flow/compare_for_test.h"
#include "numerics/suspects.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

KindFinding between(const std::string& right, const std::string& wrong) {
  const Model a = parse_model(right), b = parse_model(wrong);
  FedTensors names;
  for (const onnx::NodeProto& node : a.proto().graph().node())
    for (const std::string& name : node.output()) names.emplace(name, name);
  return graph_difference(a, b, names);
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

TEST(GraphDifference, ExchangedOutputsAreNamed) {
  const KindFinding found = between(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[2] y) { a, b = Split <axis = 0> (x) y = Tanh(a) })",
                                    R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[2] y) { b, a = Split <axis = 0> (x) y = Tanh(a) })");
  EXPECT_EQ(found.kind, FaultKind::kLayout);
  EXPECT_THAT(found.text, HasSubstr("output 0 of Split is 'b', in the reference 'a'"));
}

TEST(GraphDifference, AnotherInputIsNamed) {
  const KindFinding found = between(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) { a = Tanh(x) b = Exp(x) y = Sub(a, b) })",
                                    R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) { a = Tanh(x) b = Exp(x) y = Sub(b, a) })");
  EXPECT_THAT(found.text, HasSubstr("input 0 of Sub is 'b', in the reference 'a'"));
}

}  // namespace
}  // namespace tenonnx
