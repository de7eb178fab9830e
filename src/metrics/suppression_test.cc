// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/suppression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

// Six unit squares, [y1, x1, y2, x2], in three piles at x = 0, 10 and 100: the boxes of the example
// in the ONNX operator's text. Their scores: 0.9 and 0.75 and 0.6, 0.95 and 0.5, 0.3.
Tensor boxes() {
  return Tensor::from<float>(DType::kFloat32, {1, 6, 4},
                             {0, 0,  1, 1,  0, 0.1F,  1, 1.1F,  0, -0.1F, 1, 0.9F,
                              0, 10, 1, 11, 0, 10.1F, 1, 11.1F, 0, 100,   1, 101});
}
Tensor scores(const std::vector<float>& values = {0.9F, 0.75F, 0.6F, 0.95F, 0.5F, 0.3F}) {
  return Tensor::from<float>(DType::kFloat32, {1, 1, 6}, values);
}
Tensor chosen(const std::vector<std::int64_t>& of) {
  std::vector<std::int64_t> triples;
  for (const std::int64_t box : of) triples.insert(triples.end(), {0, 0, box});
  return Tensor::from<std::int64_t>(DType::kInt64, {std::ssize(of), 3}, triples);
}
SuppressionSpec spec() {
  SuppressionSpec out;
  out.max_output = 3;
  out.iou_threshold = 0.5;
  out.score_threshold = 0;
  return out;
}
SelectionAgreement compared(const Tensor& indices, const SuppressionSpec& by = spec(),
                            const Tensor& s = scores()) {
  auto out = compare_suppression(boxes(), s, indices, by);
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.ok() ? *out : SelectionAgreement();
}

TEST(Suppression, ChoosesAsOnnxDoes) {
  // "nonmaxsuppression_suppress_by_IOU" of the operator's tests: 3, 0, 5.
  const SelectionAgreement same = compared(chosen({3, 0, 5}));
  EXPECT_EQ(same.chosen, 3);
  EXPECT_EQ(same.chosen_by_candidate, 3);
  EXPECT_EQ(same.in_common, 3);
  EXPECT_EQ(same.same_position, 3);
  EXPECT_EQ(same.margin, 0);
  EXPECT_EQ(same.box_margin, 0);
  // "..._suppress_by_IOU_and_scores", threshold 0.4: 3, 0. "..._limit_output_size", 2: 3, 0.
  SuppressionSpec high = spec();
  high.score_threshold = 0.4;
  EXPECT_EQ(compared(chosen({3, 0}), high).same_position, 2);
  SuppressionSpec two = spec();
  two.max_output = 2;
  EXPECT_EQ(compared(chosen({3, 0}), two).same_position, 2);
  EXPECT_EQ(compared(chosen({3, 0}), two).margin, 0);
  SuppressionSpec none = spec();
  none.max_output = 0;
  EXPECT_EQ(compared(chosen({}), none).chosen, 0);
  EXPECT_EQ(compared(chosen({}), none).margin, 0);
}

TEST(Suppression, AnotherOrderIsTheSameSet) {
  const SelectionAgreement turned = compared(chosen({5, 3, 0}));
  EXPECT_EQ(turned.in_common, 3);
  EXPECT_EQ(turned.same_position, 0);
  const Check check = suppression_check("NMS", turned, {0, "0"}, {0, "0"});
  EXPECT_EQ(check.verdict, Verdict::kPass);
  EXPECT_THAT(check.note, HasSubstr("the order differs"));
}

// In the pile at 0 box 1 for box 0: right where box 1's score were the higher one.
TEST(Suppression, ANeighbourIsTakenWhereScoresAreOffByTheirDifference) {
  const SelectionAgreement other = compared(chosen({3, 1, 5}));
  EXPECT_NEAR(other.margin, 0.9 - 0.75, 1e-6);
  EXPECT_EQ(other.box_margin, 0);
  EXPECT_EQ(other.left_out, 0);
  EXPECT_EQ(suppression_check("NMS", other, {0.08, ""}, {0, ""}).verdict, Verdict::kPass);
  EXPECT_EQ(suppression_check("NMS", other, {0.07, ""}, {0, ""}).verdict, Verdict::kFail);
}

TEST(Suppression, OneMoreOrOneFewerIsAScoreAtTheThreshold) {
  SuppressionSpec at = spec();
  at.score_threshold = 0.25;
  const SelectionAgreement fewer = compared(chosen({3, 0}), at);  // 5 has 0.3
  EXPECT_EQ(fewer.chosen, 3);
  EXPECT_EQ(fewer.chosen_by_candidate, 2);
  EXPECT_NEAR(fewer.margin, 0.05, 1e-6);
  at.score_threshold = 0.35;
  const SelectionAgreement more = compared(chosen({3, 0, 5}), at);
  EXPECT_EQ(more.chosen, 2);
  EXPECT_NEAR(more.margin, 0.05, 1e-6);
  EXPECT_EQ(more.taken, 5);
  // Without a threshold nothing excuses the box that was left out.
  at.score_threshold = -kInf;
  const SelectionAgreement lost = compared(chosen({3, 0}), at);
  EXPECT_EQ(lost.margin, kInf);
  EXPECT_EQ(suppression_check("NMS", lost, {1e9, ""}, {1e9, ""}).verdict, Verdict::kFail);
}

TEST(Suppression, TwoThatOverlapAreATieByTheirCoordinates) {
  // Boxes 0 and 1 share 0.9 of 1.1: IoU 9/11 = 0.818. Both are taken where the threshold is 0.82,
  // one where it is 0.81.
  SuppressionSpec at = spec();
  at.max_output = 6;
  at.iou_threshold = 0.81;
  const SelectionAgreement both = compared(chosen({3, 0, 1, 5}), at);
  EXPECT_EQ(both.chosen, 3);
  EXPECT_EQ(both.chosen_by_candidate, 4);
  EXPECT_EQ(both.margin, 0);
  // Every coordinate off by e at the worst: dIoU/de = (2 (0.9 + 1) (1 + 9/11) + 9/11 * 8) / 1.1.
  const double iou = 9.0 / 11, slope = (2 * 1.9 * (1 + iou) + iou * 8) / 1.1;
  EXPECT_NEAR(both.box_margin, (iou - 0.81) / slope, 1e-6);
  EXPECT_EQ(suppression_check("NMS", both, {0, ""}, {1e-3, ""}).verdict, Verdict::kPass);
  const Check fails = suppression_check("NMS", both, {0, ""}, {1e-4, ""});
  EXPECT_EQ(fails.verdict, Verdict::kFail);
  EXPECT_THAT(fails.name, HasSubstr("margin of boxes"));
  // The other way: the threshold lets both in and one is left out, though its score is good.
  at.iou_threshold = 0.82;
  const SelectionAgreement one = compared(chosen({3, 0, 4, 5}), at);
  EXPECT_GT(one.box_margin, 0);
  EXPECT_LT(one.box_margin, 1e-3);
  EXPECT_EQ(one.margin, 0);
}

TEST(Suppression, TriplesThatAreNoneAreCounted) {
  const Tensor bad = Tensor::from<std::int64_t>(
      DType::kInt64, {4, 3}, {0, 0, 3, 0, 0, 3, 0, 1, 0, 0, 0, 6});  // twice, class 1, box 6
  const SelectionAgreement agreement = compared(bad);
  EXPECT_EQ(agreement.invalid, 3);
  EXPECT_EQ(suppression_check("NMS", agreement, {9, ""}, {9, ""}).verdict, Verdict::kFail);
  SuppressionSpec one = spec();
  one.max_output = 1;
  EXPECT_EQ(compared(chosen({3, 0}), one).invalid, 1);  // more than may be
  const Tensor usable = usable_indices(bad, DType::kInt64, {1, 1, 6});
  EXPECT_EQ(usable.data<std::int64_t>()[7], 0);
  EXPECT_EQ(usable.data<std::int64_t>()[11], 5);
}

TEST(Suppression, CentresAndTurnedCornersAreTheSameBoxes) {
  Tensor centres = boxes().clone(), turned = boxes().clone();
  for (int i = 0; i < 6; ++i) {
    float* c = centres.mutable_data<float>() + 4 * i;
    float* t = turned.mutable_data<float>() + 4 * i;
    const float y0 = t[0], x0 = t[1], y1 = t[2], x1 = t[3];
    c[0] = (x0 + x1) / 2, c[1] = (y0 + y1) / 2, c[2] = x1 - x0, c[3] = y1 - y0;
    t[0] = y1, t[1] = x1, t[2] = y0, t[3] = x0;
  }
  SuppressionSpec by_centre = spec();
  by_centre.center_point_box = true;
  EXPECT_EQ(compare_suppression(centres, scores(), chosen({3, 0, 5}), by_centre)->same_position, 3);
  EXPECT_EQ(compare_suppression(turned, scores(), chosen({3, 0, 5}), spec())->same_position, 3);
}

TEST(Suppression, RefusesWhatDoesNotFit) {
  const Tensor pairs = Tensor::from<std::int64_t>(DType::kInt64, {1, 2}, {0, 0});
  const auto refused = compare_suppression(boxes(), scores(), pairs, spec());
  EXPECT_THAT(refused.status().message(), HasSubstr("int64 [1,2]"));
  EXPECT_FALSE(compare_suppression(scores(), boxes(), chosen({0}), spec()).ok());
}

}  // namespace
}  // namespace tenonnx
