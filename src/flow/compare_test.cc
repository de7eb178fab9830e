// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include "base/npy.h"
#include "base/temporary_directory.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::from<float>(DType::kFloat32, std::move(shape), values);
}

// Uniform in [low, high): the same on every machine.
Tensor uniform(Shape shape, double low, double high, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  Tensor t(DType::kFloat32, std::move(shape));
  for (std::int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] =
        static_cast<float>(low + (high - low) * (static_cast<double>(engine() >> 11) * 0x1p-53));
  return t;
}

class Compare : public ::testing::Test {
 protected:
  fs::path save(const std::string& name, const std::string& text) const {
    const fs::path path = temporary_.path() / name;
    EXPECT_TRUE(parse_model(text.c_str()).save(path).ok());
    return path;
  }
  fs::path save(const std::string& name, const TensorMap& tensors) const {
    const fs::path path = temporary_.path() / name;
    EXPECT_TRUE(write_npz(path, tensors).ok());
    return path;
  }
  CompareOptions options(const fs::path& reference, const TensorMap& inputs) const {
    CompareOptions out;
    out.reference = reference;
    out.inputs = save("inputs.npz", inputs);
    out.cache = "none";
    out.load.intra_op_threads = 1;
    return out;
  }
  // A device that stores float16 and overflows to infinity, as "sim:toy16".
  void make_device() const {
    const auto entry = [](const std::string& value) {
      return "{\"value\": " + value + ", \"source\": \"made up\", \"checked\": \"2026-11\"}";
    };
    std::ofstream file(temporary_.path() / "toy16.json");
    file << R"({"schema_version": 1, "name": "toy16", "title": "toy", "source": "made up",)"
         << R"( "checked": "2026-11", "arithmetic": {"storage": )" << entry("\"float16\"");
    for (const char* name : {"round_inputs", "round_weights", "round_outputs"})
      file << ", \"" << name << "\": " << entry("true");
    for (const char* name :
         {"overflow_elementwise", "overflow_matmul_result", "overflow_matmul_operand"})
      file << ", \"" << name << "\": " << entry("\"infinity\"");
    file << ", \"subnormals\": " << entry("\"keep\"") << "}}";
    file.close();
    ::setenv("TENONNX_DEVICES", temporary_.path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("TENONNX_DEVICES"); }

  static CompareResult run(const CompareOptions& options) {
    auto result = compare(options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(*result) : CompareResult();
  }
  static const ComparedTensor& at(const CompareResult& result, const std::string& name) {
    static const ComparedTensor none;
    for (const ComparedTensor& tensor : result.tensors)
      if (tensor.plan.tensor.name == name) return tensor;
    ADD_FAILURE() << "no tensor " << name;
    return none;
  }
  TemporaryDirectory temporary_;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

constexpr const char* kToy = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2,8] x) => (float[2,8] y) <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
  a = Mul (x, w)
  b = Softmax <axis = -1> (a)
  y = Add (b, a)
})";

TEST_F(Compare, AFloat16DeviceIsWithinItsNoiseFloor) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.on = "sim:htp-v73";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  EXPECT_EQ(coverage(result), "compared 3 of 3 tensors, 0 unmapped");
  const TensorComparison& softmax = *at(result, "b").figures;
  EXPECT_GT(softmax.error.max_abs, 0);
  EXPECT_GT(softmax.path.max_abs, 0);
  ASSERT_TRUE(softmax.softmax_sum.has_value());
  // Eight values below 1, each within half a step of 2^-11: the sum within 8 * 2^-12.
  EXPECT_LE(*softmax.softmax_sum, 8 * 0x1p-12);
  EXPECT_LE(*softmax.softmax_baseline, 8 * 0x1p-12);
  EXPECT_THAT(softmax.check.limit.origin, HasSubstr("8 x the noise floor"));
  EXPECT_EQ(result.taken, "as added outputs");
}

// htp-v73 rounds every value to float16 and does nothing else to these, as the floor does.
TEST_F(Compare, SaysWhereTheCandidateIsTheFloorItself) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.on = "sim:htp-v73";
  const CompareResult result = run(o);
  EXPECT_EQ(result.at_floor(), 3U);
  EXPECT_EQ(to_json(result)["coverage"]["at_floor"], 3);
  EXPECT_THAT(result.notes,
              ::testing::Contains(AllOf(HasSubstr("in 3 of the 3 tensors that differ"),
                                        HasSubstr("'sim:htp-v73' computes as the floor does"))));
  EXPECT_THAT(describe(result), HasSubstr("= floor"));
  for (std::size_t i = 1; i < 3; ++i)  // then ordered by their error
    EXPECT_GE(result.worst()[i - 1]->figures->error.relative_l2.value(),
              result.worst()[i]->figures->error.relative_l2.value());
  // An error of its own is measured.
  o.candidate = save("b.onnx", replaced(kToy, "7, 8}", "7, 8.5}"));
  const CompareResult wrong = run(o);
  EXPECT_LT(wrong.at_floor(), 2U);
  EXPECT_THAT(describe(wrong), ::testing::Not(HasSubstr("is the noise floor itself")));
}

TEST_F(Compare, AnErrorBeyondTheFloorIsNamedFirst) {
  std::string wrong = kToy;
  wrong.replace(wrong.find("7, 8}"), 5, "7, 9}");
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.candidate = save("b.onnx", wrong);
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kFail);
  ASSERT_NE(result.first_beyond(), nullptr);
  EXPECT_EQ(result.first_beyond()->plan.tensor.name, "a");
  EXPECT_THAT(describe(result), HasSubstr("'a' of Mul"));
}

// (x * 0.1) * 0.3 and x * 0.03 differ by a rounding; no floor of optimisation levels shows that.
TEST_F(Compare, MergedConstantsAreWithinOneRoundingMore) {
  const char* apart = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4096] x) => (float[4096] y) <float p = {0.1}, float q = {0.3}> {
      a = Mul (x, p)
      y = Mul (a, q)
    })";
  const char* merged = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4096] x) => (float[4096] y) <float r = {0.03}> { y = Mul (x, r) })";
  CompareOptions o = options(save("a.onnx", apart), {{"x", uniform({4096}, -1, 1, 2)}});
  o.candidate = save("b.onnx", merged);
  std::ofstream(temporary_.path() / "b.passes.json")
      << R"({"names": {"renamed": {}, "removed": {"a": "merge_mul"}}})";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  EXPECT_EQ(coverage(result), "compared 1 of 2 tensors, 1 fused away, 0 unmapped");
  EXPECT_GT(at(result, "y").figures->error.differing, 0);
  EXPECT_EQ(result.names, "b.passes.json");
}

TEST_F(Compare, WhatHasNoCounterpartLeavesItInconclusive) {
  const char* other = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,8] x) => (float[2,8] y) <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
      other = Mul (x, w)
      b = Softmax <axis = -1> (other)
      y = Add (b, other)
    })";
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.candidate = save("b.onnx", other);
  CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(coverage(result), "compared 2 of 3 tensors, 1 unmapped");
  std::ofstream(temporary_.path() / "names.json")
      << R"({"renamed": {"a": "other"}, "removed": {}})";
  o.names = temporary_.path() / "names.json";
  result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  EXPECT_EQ(at(result, "a").plan.candidate, "other");
}

constexpr const char* kTopK = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,8400] logits, float[1,8400,16] memory) => (float[1,300,16] rows, float[1,300] best)
<int64[1] k = {300}, int64[1] axis = {2}, int64[3] wide = {1, 300, 16}> {
  scores = Sigmoid (logits)
  best, chosen = TopK <axis = 1> (scores, k)
  column = Unsqueeze (chosen, axis)
  index = Expand (column, wide)
  rows = GatherElements <axis = 1> (memory, index)
})";

// 300 scores in 0.5..1, where float16 has 1024 steps: a quarter share a step with another, and
// ties are broken by index. All others are below 0.4, so that the set is clear.
TensorMap detector_inputs() {
  const Tensor in = uniform({300}, 0.5, 1, 3), out = uniform({8400}, 0.001, 0.4, 4);
  Tensor logits(DType::kFloat32, {1, 8400});
  for (int i = 0; i < 8400; ++i) {
    const double p = i % 28 == 5 ? in.data<float>()[i / 28] : out.data<float>()[i];
    logits.mutable_data<float>()[i] = static_cast<float>(std::log(p / (1 - p)));
  }
  return {{"logits", logits}, {"memory", uniform({1, 8400, 16}, -1, 1, 5)}};
}

TEST_F(Compare, TopKIsComparedAsASetAndItsRowsAfterMatching) {
  CompareOptions o = options(save("a.onnx", kTopK), detector_inputs());
  o.on = "sim:htp-v73";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  ASSERT_EQ(result.selections.size(), 1U);
  const SelectionAgreement& agreement = *result.selections[0].agreement;
  EXPECT_EQ(agreement.in_common, 300);
  // A quarter to a half of the places, by the count of shared steps above.
  EXPECT_GT(agreement.same_position, 120);
  EXPECT_LT(agreement.same_position, 270);
  EXPECT_THAT(result.selections[0].check.note, HasSubstr("their order is not"));
  const TensorComparison& rows = *at(result, "rows").figures;
  ASSERT_TRUE(rows.unmatched_cosine.has_value());
  EXPECT_LT(*rows.unmatched_cosine, 0.95);  // independent rows have a cosine of 0
  EXPECT_GT(*rows.error.cosine, 0.999999);
  EXPECT_THAT(result.notes, ::testing::Contains(HasSubstr("row by row 'rows'")));
}

TEST_F(Compare, ATrueSwapOfTwoSelectionsFails) {
  // The candidate takes the best score for a bad one.
  std::string wrong = kTopK;
  wrong.replace(wrong.find("scores = Sigmoid (logits)"), 25,
                "low = Constant <value = float[1] {0.97}> ()\n  right = Sigmoid (logits)\n"
                "  zero = Constant <value = float[1] {0.0}> ()\n"
                "  high = Greater (right, low)\n  scores = Where (high, zero, right)");
  CompareOptions o = options(save("a.onnx", kTopK), detector_inputs());
  o.candidate = save("b.onnx", wrong);
  o.tensors = "rows";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kFail);
  const SelectionAgreement& agreement = *result.selections[0].agreement;
  EXPECT_LT(agreement.in_common, 300);
  EXPECT_GT(agreement.margin, 0.5);
  EXPECT_EQ(result.selections[0].check.verdict, Verdict::kFail);
}

constexpr const char* kLabels = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[4] scores) => (int64[3] labels, float[3] best)
<int64[1] k = {3}, int64[4] classes = {7, 8, 9, 5}, float[4] nudge = {0, 0, 0, 0}> {
  moved = Add (scores, nudge)
  best, chosen = TopK <axis = 0> (moved, k)
  labels = Gather <axis = 0> (classes, chosen)
})";

TEST_F(Compare, APermutationOfEqualDetectionsPassesAClassSwapDoesNot) {
  const TensorMap inputs = {{"scores", floats({4}, {0.5F, 0.7321F, 0.7321F, 0.25F})}};
  CompareOptions o = options(save("a.onnx", kLabels), inputs);
  o.tensors = "labels";
  o.storage = "float16";
  // 2^-13 turns the two equal scores over; float16 moves them by a third of its step, 2^-11.
  o.candidate = save(
      "b.onnx", replaced(kLabels, "nudge = {0, 0, 0, 0}", "nudge = {0, 0, 0.0001220703125, 0}"));
  const CompareResult turned = run(o);
  EXPECT_EQ(turned.verdict, Verdict::kPass) << describe(turned);
  EXPECT_EQ(turned.selections[0].agreement->same_position, 1);
  o.candidate = save("c.onnx", replaced(kLabels, "{7, 8, 9, 5}", "{8, 7, 9, 5}"));
  const CompareResult swapped = run(o);
  EXPECT_EQ(swapped.verdict, Verdict::kFail);
  EXPECT_EQ(at(swapped, "labels").figures->error.differing, 2);
}

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

TEST_F(Compare, FindsALayerNormalizationWhoseOverflowDisappears) {
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

TEST_F(Compare, FindsItWhereTheDeviceSaturates) {
  CompareOptions o = options(save("a.onnx", kLayerNorm), {{"x", uniform({2, 64}, -900, 900, 6)}});
  o.on = "sim:htp-v73";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kFail);
  ASSERT_NE(result.first_beyond(), nullptr);
  EXPECT_EQ(result.first_beyond()->plan.tensor.name, "square");
  EXPECT_GT(at(result, "square").figures->saturation.saturated, 0);
  EXPECT_THAT(result.first_beyond()->figures->check.note, HasSubstr("saturated"));
}

TEST_F(Compare, AMaskThatSaturatesIsAMaskStill) {
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

TEST_F(Compare, FindsOverflowByTheLengthOfAReduction) {
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

// A score that is off by 0.02, beside boxes whose float16 step is 0.5.
TEST_F(Compare, ScoresBesideBoxesAreJudgedByTheirOwnFloor) {
  const char* mixed = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4,64] boxes, float[1,2,64] scores) => (float[1,6,64] y) <float nudge = {0}> {
      moved = Add (scores, nudge)
      y = Concat <axis = 1> (boxes, moved)
    })";
  CompareOptions o = options(save("a.onnx", mixed), {{"boxes", uniform({1, 4, 64}, 100, 640, 8)},
                                                     {"scores", uniform({1, 2, 64}, 0.1, 1, 9)}});
  o.candidate = save("b.onnx", replaced(mixed, "nudge = {0}", "nudge = {0.02}"));
  o.storage = "float16";
  o.tensors = "y";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kFail);
  ASSERT_EQ(at(result, "y").figures->slices.size(), 2U);
  EXPECT_EQ(at(result, "y").figures->slices[0].error.differing, 0);
  EXPECT_THAT(at(result, "y").figures->check.name, HasSubstr("y[4:6 of axis 1]"));
  // Against the whole tensor's floor, the boxes' half step, it would have passed.
  EXPECT_LT(at(result, "y").figures->error.max_abs, 8 * at(result, "y").figures->path.max_abs);
}

TEST_F(Compare, BoundaryRunsThePartsAndSaysSo) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.on = "sim:htp-v73";
  o.tensors = "boundary";
  o.cut = "a";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  EXPECT_EQ(coverage(result), "compared 2 of 2 tensors, 0 unmapped");
  EXPECT_EQ(result.taken, "at cuts, part after part");
}

TEST_F(Compare, GoesOnWhereAnEqualRunWasEnded) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.on = "sim:htp-v73";
  o.cache = temporary_.path() / "cache";
  const CompareResult first = run(o);
  EXPECT_EQ(first.recalled, 0U);
  o.resume = true;
  const CompareResult second = run(o);
  EXPECT_EQ(second.recalled, second.windows);
  Json a = to_json(first), b = to_json(second);
  EXPECT_EQ(second.reused, 3U);
  EXPECT_THAT(second.notes, ::testing::Contains(HasSubstr("3 of 3 compared tensors are reused")));
  for (const char* key : {"settings", "notes"}) {
    a.erase(key);
    b.erase(key);
  }
  EXPECT_EQ(a.dump(), b.dump());
  o.factor = 4;  // another question
  EXPECT_EQ(run(o).recalled, 0U);
  for (const auto& entry : fs::recursive_directory_iterator(o.cache))
    if (entry.is_regular_file()) std::ofstream(entry.path()) << "{ cut of";
  EXPECT_EQ(run(o).recalled, 0U);  // what cannot be read is computed again
}

TEST_F(Compare, NamedGatesAreOfferedForTheOutputs) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.on = "sim:htp-v73";
  o.gates = {"allclose", "psnr"};
  const CompareResult result = run(o);
  std::vector<std::string> names;
  for (const Check& check : result.checks) names.push_back(check.name);
  EXPECT_THAT(names, AllOf(::testing::Contains("y: allclose"), ::testing::Contains("y: PSNR")));
  EXPECT_EQ(result.verdict, Verdict::kFail);  // float16 is not within 1e-5
}

TEST_F(Compare, RandomInputsProveNothing) {
  CompareOptions o;
  o.reference = save("a.onnx", kToy);
  o.on = "sim:htp-v73";
  o.cache = "none";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kInconclusive) << describe(result);
  EXPECT_THAT(describe(result), HasSubstr("random values, not images: give --images DIR"));
}

TEST_F(Compare, ReportFitsATerminal) {
  CompareOptions o = options(save("a.onnx", kLayerNorm), {{"x", uniform({2, 64}, -900, 900, 6)}});
  o.on = "sim:htp-v73";
  std::istringstream text(describe(run(o)));
  for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 100U) << line;
}

// A recording of the outputs alone: the rows of the candidate cannot be brought to the reference.
TEST_F(Compare, OutputsBehindASelectionThatWasNotRecordedNeverPass) {
  const TensorMap inputs = {{"scores", floats({4}, {0.5F, 0.7321F, 0.7325F, 0.25F})}};
  CompareOptions o = options(save("a.onnx", kLabels), inputs);
  const auto recording = [&](const std::string& name, TensorMap outputs) {
    fs::create_directory(temporary_.path() / name);
    save(name + "/000.npz", outputs);
    return "files:" + (temporary_.path() / name).string();
  };
  const Tensor wrong = Tensor::from<std::int64_t>(DType::kInt64, {3}, {9, 8, 5});
  TensorMap outputs = {{"labels", wrong}, {"best", floats({3}, {0.5F, 0.7321F, 0.7325F})}};
  o.on = recording("wrong", outputs);
  o.gates = {"allclose"};
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kInconclusive) << describe(result);
  for (const char* name : {"labels", "best"})
    EXPECT_EQ(at(result, name).figures->check.verdict, Verdict::kInconclusive) << name;
  for (const Check& check : at(result, "best").figures->gates)
    EXPECT_EQ(check.verdict, Verdict::kInconclusive);
  EXPECT_THAT(describe(result), HasSubstr("record 'chosen'"));
  for (const Check& check : result.checks)
    EXPECT_THAT(check.name, ::testing::Not(HasSubstr("beyond their limit")));  // none was judged
  // With the indices the same labels are wrong.
  outputs.emplace("chosen", Tensor::from<std::int64_t>(DType::kInt64, {3}, {2, 1, 0}));
  o.on = recording("more", outputs);
  o.gates.clear();
  EXPECT_EQ(at(run(o), "labels").figures->check.verdict, Verdict::kFail);
}

TEST_F(Compare, AReversedOrderPassesAsASetWithANote) {
  const TensorMap inputs = {{"scores", floats({4}, {0.5F, 0.7F, 0.9F, 0.25F})}};
  CompareOptions o = options(save("a.onnx", kLabels), inputs);
  const fs::path folder = temporary_.path() / "reversed";
  fs::create_directory(folder);
  save("reversed/000.npz", {{"labels", Tensor::from<std::int64_t>(DType::kInt64, {3}, {7, 8, 9})},
                            {"best", floats({3}, {0.5F, 0.7F, 0.9F})},
                            {"moved", floats({4}, {0.5F, 0.7F, 0.9F, 0.25F})},
                            {"chosen", Tensor::from<std::int64_t>(DType::kInt64, {3}, {0, 1, 2})}});
  o.on = "files:" + folder.string();
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  EXPECT_THAT(result.notes, ::testing::Contains(HasSubstr("read row 0 see another detection")));
}

TEST_F(Compare, WhereTheReferenceIsNotFiniteTheCandidateMustAgree) {
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

TEST_F(Compare, ATensorWithoutANumberProvesNothing) {
  const char* root = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { y = Sqrt (x) })";
  CompareOptions o = options(save("a.onnx", root), {{"x", floats({2}, {-1, -2})}});
  EXPECT_EQ(run(o).verdict, Verdict::kInconclusive);  // NaN on both sides
  fs::create_directories(temporary_.path() / "rec");
  save("rec/000.npz", {{"y", floats({2}, {1, 2})}});
  o.on = "files:" + (temporary_.path() / "rec").string();
  EXPECT_EQ(run(o).verdict, Verdict::kFail);
}

TEST_F(Compare, AnOutputIsNeitherFusedAwayNorInside) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.candidate = save("b.onnx", kToy);
  std::ofstream(temporary_.path() / "n.json")
      << R"({"renamed": {}, "removed": {"y": "fuse_gemm"}})";
  o.names = temporary_.path() / "n.json";
  EXPECT_THAT(compare(o).status().message(),
              AllOf(HasSubstr("'n.json'"), HasSubstr("'y', which is an output")));
  o.names.clear();
  o.candidate = save("c.onnx", replaced(kToy, "(float[2,8] y)", "(float[2,8] b)"));
  EXPECT_THAT(compare(o).status().message(), AllOf(HasSubstr("outputs of the reference are 'y'"),
                                                   HasSubstr("those of the candidate 'b'")));
  o.tensors = "b";  // asks nothing of the outputs
  EXPECT_EQ(run(o).verdict, Verdict::kPass);
  o.tensors = "all";
  o.reference = save("two.onnx", replaced(kToy, "(float[2,8] y)", "(float[2,8] y, float[2,8] b)"));
  o.candidate = save("turn.onnx", replaced(kToy, "(float[2,8] y)", "(float[2,8] b, float[2,8] y)"));
  const CompareResult turned = run(o);
  EXPECT_EQ(turned.verdict, Verdict::kInconclusive);
  EXPECT_THAT(describe(turned), HasSubstr("order of the outputs"));
}

TEST_F(Compare, WhatAProgramComputedIsNotReused) {
  CompareOptions o = options(save("a.onnx", kToy), {{"x", uniform({2, 8}, -1, 1, 1)}});
  o.tensors = "y";
  o.cache = temporary_.path() / "cache";
  const auto program = [&](float value) {
    save("y.npz", {{"y", floats({2, 8}, std::vector<float>(16, value))}});
    std::ofstream(temporary_.path() / "run.sh")
        << "cp '" << (temporary_.path() / "y.npz").string() << "' \"$1/outputs.npz\"\n";
  };
  o.on = "exec:sh " + (temporary_.path() / "run.sh").string();
  program(1);
  const CompareResult first = run(o);
  program(2);
  o.resume = true;
  const CompareResult second = run(o);
  EXPECT_EQ(second.reused, 0U);
  EXPECT_NE(at(first, "y").figures->error.max_abs, at(second, "y").figures->error.max_abs);
  EXPECT_THAT(second.notes, ::testing::Contains(HasSubstr("may change without its address")));
}

TEST_F(Compare, RefusesBadInputWithWhatWasExpected) {
  const TensorMap good = {{"x", uniform({2, 8}, -1, 1, 1)}};
  CompareOptions o = options(save("a.onnx", kToy), good);
  const auto message = [](const CompareOptions& bad) { return compare(bad).status().message(); };
  CompareOptions bad = o;
  bad.on = "htp:1";
  EXPECT_THAT(message(bad), AllOf(HasSubstr("--on"), HasSubstr("unknown executor address 'htp:1'"),
                                  HasSubstr("sim:NAME")));
  bad = o;
  bad.inputs = save("other.npz", TensorMap{{"images", floats({1}, {1})}});
  EXPECT_THAT(message(bad), AllOf(HasSubstr("no array for the input 'x float32 [2,8]'"),
                                  HasSubstr("'images' float32 [1]")));
  bad.inputs = save("shape.npz", TensorMap{{"x", floats({8}, std::vector<float>(8))}});
  EXPECT_THAT(message(bad), AllOf(HasSubstr("shape [8]"), HasSubstr("takes [2,8]")));
  bad.inputs = save("type.npz", TensorMap{{"x", Tensor(DType::kFloat64, {2, 8})}});
  EXPECT_THAT(message(bad), AllOf(HasSubstr("is float64"), HasSubstr("takes float32")));
  bad.inputs = temporary_.path() / "missing.npz";
  EXPECT_THAT(message(bad), HasSubstr("missing.npz"));
  bad.inputs = temporary_.path() / "a.onnx";
  EXPECT_THAT(message(bad), HasSubstr("neither an .npz nor a folder"));
  bad = o;
  bad.tensors = "softmax*";
  EXPECT_THAT(message(bad), HasSubstr("no tensor matches 'softmax*'"));
  bad = o;
  bad.candidate = save("wide.onnx", replaced(replaced(kToy, "float[2,8] x", "float[4,8] x"),
                                             "float[2,8] y", "float[4,8] y"));
  EXPECT_THAT(message(bad), AllOf(HasSubstr("x float32 [2,8]"), HasSubstr("x float32 [4,8]")));
  bad = o;
  bad.storage = "int8";
  EXPECT_THAT(message(bad), HasSubstr("float16, bfloat16 or float32, got 'int8'"));
  bad = o;
  bad.gates = {"ssim"};
  EXPECT_THAT(message(bad), AllOf(HasSubstr("no gate 'ssim'"), HasSubstr("allclose, psnr, map")));
  bad = o;
  bad.cut = "a";
  EXPECT_THAT(message(bad), HasSubstr("--cut 'a' is of --tensors boundary"));
  bad = o;
  bad.images = temporary_.path();
  EXPECT_THAT(message(bad), HasSubstr("not both"));
  bad = o;
  bad.names = save("c.onnx", kToy);
  bad.candidate = save("d.onnx", kToy);
  EXPECT_FALSE(compare(bad).ok());
}

}  // namespace
}  // namespace tenonnx
