// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Selections through a whole comparison: TopK, NonMaxSuppression, ArgMax, gathers by an index that
// was computed.
#include <cmath>
#include <string>
#include <vector>

#include "flow/compare_for_test.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CompareSelections : public CompareFixture {
 protected:
  CompareOptions options(const std::string& reference, const TensorMap& inputs) const {
    return CompareFixture::options(save("a.onnx", reference), inputs);
  }
};

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

TEST_F(CompareSelections, TopKIsComparedAsASetAndItsRowsAfterMatching) {
  CompareOptions o = options(kTopK, detector_inputs());
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

TEST_F(CompareSelections, ATrueSwapOfTwoSelectionsFails) {
  // The candidate takes the best score for a bad one.
  std::string wrong = kTopK;
  wrong.replace(wrong.find("scores = Sigmoid (logits)"), 25,
                "low = Constant <value = float[1] {0.97}> ()\n  right = Sigmoid (logits)\n"
                "  zero = Constant <value = float[1] {0.0}> ()\n"
                "  high = Greater (right, low)\n  scores = Where (high, zero, right)");
  CompareOptions o = options(kTopK, detector_inputs());
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

TEST_F(CompareSelections, APermutationOfEqualDetectionsPassesAClassSwapDoesNot) {
  const TensorMap inputs = {{"scores", floats({4}, {0.5F, 0.7321F, 0.7321F, 0.25F})}};
  CompareOptions o = options(kLabels, inputs);
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

// A recording of the outputs alone: the rows of the candidate cannot be brought to the reference.
TEST_F(CompareSelections, OutputsBehindASelectionThatWasNotRecordedNeverPass) {
  const TensorMap inputs = {{"scores", floats({4}, {0.5F, 0.7321F, 0.7325F, 0.25F})}};
  CompareOptions o = options(kLabels, inputs);
  const auto recording = [&](const std::string& name, const TensorMap& outputs) {
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

TEST_F(CompareSelections, AReversedOrderPassesAsASetWithANote) {
  const TensorMap inputs = {{"scores", floats({4}, {0.5F, 0.7F, 0.9F, 0.25F})}};
  CompareOptions o = options(kLabels, inputs);
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

// 400 boxes of sides 1 to 30 in a picture of 60, of two classes; what comes out are the
// boxes and scores that were chosen.
constexpr const char* kNms = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,400,4] raw, float[1,2,400] logits) => (float[n,4] rows, float[n] best, int64[n,3] picked)
<int64 most = {200}, float iou = {0.5}, float least = {0.6}, float nudge = {0}, float grow = {1},
 int64[1] first = {0}, int64[1] last = {2}, int64[2] outer = {0, 1}, int64[2] end = {1, 3},
 int64[1] axis = {1}, int64[1] column = {0}> {
  scores = Sigmoid (logits)
  moved = Add (scores, nudge)
  boxes = Mul (raw, grow)
  picked = NonMaxSuppression (boxes, moved, most, iou, least)
  box = Slice (picked, last, end3, axis)
  box_row = Squeeze (box, axis)
  all = Squeeze (boxes, column)
  rows = Gather <axis = 0> (all, box_row)
  class_and_box = Slice (picked, one, end3, axis)
  by_class = Squeeze (moved, column)
  best = GatherND (by_class, class_and_box)
}
)";

std::string nms() {
  return replaced(kNms, "int64[1] column = {0}>",
                  "int64[1] column = {0}, int64[1] end3 = {3}, "
                  "int64[1] one = {1}>");
}

TensorMap nms_inputs() {
  const Tensor corner = uniform({400, 2}, 0, 60, 1), side = uniform({400, 2}, 1, 30, 2);
  Tensor boxes(DType::kFloat32, {1, 400, 4});
  for (int i = 0; i < 400; ++i)
    for (int j = 0; j < 2; ++j) {
      boxes.mutable_data<float>()[4 * i + j] = corner.data<float>()[2 * i + j];
      boxes.mutable_data<float>()[4 * i + j + 2] =
          corner.data<float>()[2 * i + j] + side.data<float>()[2 * i + j];
    }
  return {{"raw", boxes}, {"logits", uniform({1, 2, 400}, -3, 3, 3)}};
}

// The reference's choice is computed from its scores and boxes; ONNX Runtime's is the same one.
TEST_F(CompareSelections, NonMaxSuppressionOfTheSameValuesIsTheSameSet) {
  CompareOptions o = options(nms(), nms_inputs());
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  ASSERT_EQ(result.selections.size(), 1U);
  const SelectionAgreement& agreement = *result.selections[0].agreement;
  EXPECT_GT(agreement.chosen, 50);
  EXPECT_EQ(agreement.chosen_by_candidate, agreement.chosen);
  EXPECT_EQ(agreement.same_position, agreement.chosen);
  EXPECT_EQ(agreement.margin, 0);
  EXPECT_EQ(agreement.box_margin, 0);
}

// float16 turns near scores over and moves overlaps across the threshold, so that the two sides
// have other rows, and maybe more of them.
TEST_F(CompareSelections, NonMaxSuppressionInFloat16IsASetWithinTies) {
  CompareOptions o = options(nms(), nms_inputs());
  o.on = "sim:htp-v73";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  const SelectionAgreement& agreement = *result.selections[0].agreement;
  EXPECT_LT(agreement.same_position, agreement.chosen);  // else nothing was shown
  EXPECT_GT(*at(result, "rows").figures->error.cosine, 0.99999);
  EXPECT_GT(*at(result, "best").figures->error.cosine, 0.99999);
}

TEST_F(CompareSelections, NonMaxSuppressionWithOtherLimitsFails) {
  CompareOptions o = options(nms(), nms_inputs());
  for (const auto& [from, to] :
       {std::pair("least = {0.6}", "least = {0.7}"), std::pair("iou = {0.5}", "iou = {0.3}"),
        std::pair("most = {200}", "most = {20}")}) {
    o.candidate = save("b.onnx", replaced(nms(), from, to));
    const CompareResult result = run(o);
    EXPECT_EQ(result.verdict, Verdict::kFail) << to << "\n" << describe(result);
    EXPECT_LT(result.selections[0].agreement->chosen_by_candidate,
              result.selections[0].agreement->chosen)
        << to;
    EXPECT_EQ(result.selections[0].check.verdict, Verdict::kFail) << to;
    // Behind it the rows are those that the candidate chose: they are right.
    EXPECT_EQ(at(result, "rows").figures->check.verdict, Verdict::kPass) << to;
  }
}

TEST_F(CompareSelections, NonMaxSuppressionOfScoresThatAreOffIsAnError) {
  CompareOptions o = options(nms(), nms_inputs());
  o.candidate = save("b.onnx", replaced(nms(), "nudge = {0}", "nudge = {0.05}"));
  o.tensors = "rows";
  const CompareResult scores = run(o);
  EXPECT_EQ(scores.verdict, Verdict::kFail) << describe(scores);
  o.candidate = save("b.onnx", replaced(nms(), "moved = Add (scores, nudge)\n  boxes",
                                        "less = Sub (scores, nudge)\n  moved = Add (less, nudge)\n"
                                        "  boxes"));
  EXPECT_EQ(run(o).verdict, Verdict::kPass);  // the same scores by another way
}

// What a recording holds of another number of rows is not held against the reference's own.
TEST_F(CompareSelections, NonMaxSuppressionThatWasNotRecordedStaysOpen) {
  CompareOptions o = options(nms(), nms_inputs());
  const fs::path folder = temporary_.path() / "recorded";
  fs::create_directory(folder);
  ASSERT_TRUE(write_npz(folder / "000.npz",
                        {{"rows", uniform({7, 4}, 0, 60, 4)}, {"best", uniform({7}, 0, 1, 5)}})
                  .ok());
  o.on = "files:" + folder.string();
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kInconclusive) << describe(result);
  EXPECT_THAT(describe(result), HasSubstr("record 'picked'"));
}

TEST_F(CompareSelections, NonMaxSuppressionWhoseLimitsAreComputedStaysOpen) {
  const std::string computed =
      replaced(replaced(nms(), "float[1,2,400] logits)", "float[1,2,400] logits, float limit)"),
               "most, iou, least)", "most, limit, least)");
  TensorMap inputs = nms_inputs();
  inputs.emplace("limit", Tensor::from<float>(DType::kFloat32, {}, {0.5F}));
  const CompareResult result = run(options(computed, inputs));
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_THAT(result.selections[0].check.note, HasSubstr("are no constants"));
}

constexpr const char* kArgMax = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1,300,16] logits, float[16,8] table) => (float[1,300,8] rows, int64[1,300] label)
<float nudge = {0}> {
  scores = Sigmoid (logits)
  moved = Add (scores, nudge)
  label = ArgMax <axis = 2, keepdims = 0> (moved)
  rows = Gather <axis = 0> (table, label)
})";

TEST_F(CompareSelections, ArgMaxIsJudgedByItsScoresAndItsRowsAfterMatching) {
  // Logits near 0 in steps of 1e-4: float16 has 2^-11 at a score of 1/2, so that many rows tie.
  CompareOptions o = options(kArgMax, {{"logits", uniform({1, 300, 16}, -0.01, 0.01, 6)},
                                       {"table", uniform({16, 8}, -1, 1, 7)}});
  o.on = "sim:htp-v73";
  const CompareResult result = run(o);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);
  const SelectionAgreement& agreement = *result.selections[0].agreement;
  EXPECT_EQ(agreement.lanes, 300);
  EXPECT_LT(agreement.in_common, 300);  // else nothing was shown
  EXPECT_GT(*at(result, "rows").figures->error.cosine, 0.999999);
  EXPECT_LT(*at(result, "rows").figures->unmatched_cosine, 0.95);

  o.on = "cpu";
  o.candidate = save("b.onnx", replaced(kArgMax, "ArgMax", "ArgMin"));
  EXPECT_EQ(run(o).verdict, Verdict::kFail);
}

// As a sampling kernel does that was written with Gather: the index is computed, and nothing chose
// it. Between two cells both sides interpolate, so that a floor that turns over changes nothing.
constexpr const char* kSample = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[64] where, float[17] cells) => (float[64] y)
<float nudge = {0}, float shift = {0}> {
  at = Add (where, nudge)
  low = Floor (at)
  part = Sub (at, low)
  index = Cast <to = 7> (low)
  one = Constant <value = int64[1] {1}> ()
  next = Add (index, one)
  left = Gather <axis = 0> (cells, index)
  right = Gather <axis = 0> (cells, next)
  step = Sub (right, left)
  inside = Mul (step, part)
  sum = Add (left, inside)
  y = Add (sum, shift)
})";

TEST_F(CompareSelections, AGatherByAComputedIndexIsComparedByItsValues) {
  Tensor where = uniform({64}, 0.5, 15, 8);
  for (int i = 0; i < 8; ++i)  // just below a cell, by less than float16 keeps
    where.mutable_data<float>()[i] = static_cast<float>(8 + i) - 1e-4F;
  CompareOptions o = options(kSample, {{"where", where}, {"cells", uniform({17}, -1, 1, 9)}});
  o.on = "sim:htp-v73";
  const CompareResult result = run(o);
  EXPECT_TRUE(result.selections.empty());
  EXPECT_GT(at(result, "index").figures->error.differing, 0);  // floors that turned over
  EXPECT_EQ(at(result, "y").figures->check.verdict, Verdict::kPass) << describe(result);
  EXPECT_EQ(result.verdict, Verdict::kPass) << describe(result);

  o.on = "cpu";
  o.candidate = save("b.onnx", replaced(kSample, "nudge = {0}", "nudge = {0.25}"));
  EXPECT_EQ(run(o).verdict, Verdict::kFail);
}

}  // namespace
}  // namespace tenonnx
