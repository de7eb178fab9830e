// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Values that a storage type cannot hold: overflow that disappears, masks, Inf and NaN.
#include <limits>
#include <sstream>

#include "flow/compare_for_test.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CompareRange : public CompareFixture {};

// Rows of 300 and more: their squares leave float16. The sum is then infinite, the quotient 0, and
// what comes out is the bias, finite and wrong.
constexpr const char* kLayerNorm = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2,64] x) => (float[2,64] y)
<float two = {2}, float eps = {0.00001}, float gamma = {1.5}, float beta = {0.25}> {
  mean = ReduceMean <axes = [-1], keepdims = 1> (x)
  centred = Sub (x, mean)
  square = Pow (centred, two)
  variance = ReduceMean <axes = [-1], keepdims = 1> (square)
  safe = Add (variance, eps)
  deviation = Sqrt (safe)
  normal = Div (centred, deviation)
  scaled = Mul (normal, gamma)
  y = Add (scaled, beta)
})";

TEST_F(CompareRange, FindsALayerNormalizationWhoseOverflowDisappears) {
  make_device();
  CompareOptions o = options(save("a.onnx", kLayerNorm), {{"x", uniform({2, 64}, -900, 900, 6)}});
  o.on = "sim:toy16";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kFail);
  EXPECT_EQ(at(result, "y").figures->error.broken, 0);  // nothing to see at the output
  ASSERT_NE(result.first_beyond(), nullptr);
  EXPECT_EQ(result.first_beyond()->plan.tensor.name, "square");
  EXPECT_GT(at(result, "square").figures->error.broken, 0);
  EXPECT_EQ(at(result, "y").figures->check.verdict, Verdict::kFail);
  EXPECT_THAT(describe(result), HasSubstr("first in 'square' of Pow"));
}

TEST_F(CompareRange, FindsItWhereTheDeviceSaturates) {
  CompareOptions o = options(save("a.onnx", kLayerNorm), {{"x", uniform({2, 64}, -900, 900, 6)}});
  o.on = "sim:htp-v73";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kFail);
  ASSERT_NE(result.first_beyond(), nullptr);
  EXPECT_EQ(result.first_beyond()->plan.tensor.name, "square");
  EXPECT_GT(at(result, "square").figures->saturation.saturated, 0);
  EXPECT_THAT(result.first_beyond()->figures->check.note, HasSubstr("saturated"));
}

TEST_F(CompareRange, AMaskThatSaturatesIsAMaskStill) {
  const char* masked = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y) <float[4] anchors = {0.5, 3.4e38, 0.25, 3.4e38}> {
      sum = Add (x, anchors)
      y = Sigmoid (sum)
    })";
  CompareOptions o = options(save("a.onnx", masked), {{"x", uniform({4}, -1, 1, 10)}});
  o.on = "sim:htp-v73";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
}

TEST_F(CompareRange, FindsOverflowByTheLengthOfAReduction) {
  make_device();
  const char* sum = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4096] x) => (float[1,1] y) <int64[1] axes = {1}> {
      total = ReduceSum <keepdims = 1> (x, axes)
      y = Reciprocal (total)
    })";
  CompareOptions o = options(save("a.onnx", sum), {{"x", uniform({1, 4096}, 90, 110, 7)}});
  o.on = "sim:toy16";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kFail);
  EXPECT_EQ(at(result, "y").figures->error.broken, 0);  // 1 / Inf is 0
  EXPECT_EQ(result.first_beyond()->plan.tensor.name, "total");
}

TEST_F(CompareRange, ReportFitsATerminal) {
  CompareOptions o = options(save("a.onnx", kLayerNorm), {{"x", uniform({2, 64}, -900, 900, 6)}});
  o.on = "sim:htp-v73";
  std::istringstream text(describe(run(o)));
  for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST_F(CompareRange, WhereTheReferenceIsNotFiniteTheCandidateMustAgree) {
  const char* divide = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, float[4] by) => (float[4] y) { y = Div (x, by) })";
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CompareOptions o = options(
      save("a.onnx", divide),
      {{"x", floats({4}, {1, -2, 0, 8})}, {"by", floats({4}, {0, 0, 0, 2})}});  // Inf -Inf NaN 4
  const auto verdict = [&](const std::string& storage, const std::vector<float>& y) {
    fs::create_directories(temporary_.path() / "rec");
    save("rec/000.npz", {{"y", floats({4}, y)}});
    o.on = "files:" + (temporary_.path() / "rec").string();
    o.storage = storage;
    return run(o).verdict;
  };
  EXPECT_EQ(verdict("float16", {inf, -inf, nan, 4}), Verdict::kPass);
  EXPECT_EQ(verdict("float16", {inf, 5, nan, 4}), Verdict::kFail);
  EXPECT_EQ(verdict("float16", {inf, inf, nan, 4}), Verdict::kFail);
  EXPECT_EQ(verdict("float16", {inf, nan, nan, 4}), Verdict::kFail);
  EXPECT_EQ(verdict("float16", {inf, -inf, 5, 4}), Verdict::kFail);
  EXPECT_EQ(verdict("float16", {65504, -131008, nan, 4}), Verdict::kPass);
  EXPECT_EQ(verdict("float16", {65504, 65504, nan, 4}), Verdict::kFail);
  EXPECT_EQ(verdict("float32", {65504, -inf, nan, 4}), Verdict::kFail);
}

TEST_F(CompareRange, ATensorWithoutANumberProvesNothing) {
  const char* root = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { y = Sqrt (x) })";
  CompareOptions o = options(save("a.onnx", root), {{"x", floats({2}, {-1, -2})}});
  EXPECT_EQ(run(o).verdict, Verdict::kInconclusive);  // NaN on both sides
  fs::create_directories(temporary_.path() / "rec");
  save("rec/000.npz", {{"y", floats({2}, {1, 2})}});
  o.on = "files:" + (temporary_.path() / "rec").string();
  EXPECT_EQ(run(o).verdict, Verdict::kFail);
}

}  // namespace
}  // namespace tenonnx
