// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::from(DType::kFloat32, std::move(shape), values);
}

Tensor indices(Shape shape, const std::vector<std::int64_t>& values) {
  return Tensor::from(DType::kInt64, std::move(shape), values);
}

SelectionAgreement agreement(const Tensor& scores, const Tensor& chosen, SelectionSpec spec = {}) {
  const auto found = compare_selection(scores, chosen, spec);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return found.ok() ? *found : SelectionAgreement();
}

constexpr Limit none() { return {}; }

TEST(CompareSelection, TheSameOrder) {
  const auto got = agreement(floats({5}, {1, 5, 3, 5, 2}), indices({3}, {1, 3, 2}));
  EXPECT_EQ(got.chosen, 3);
  EXPECT_EQ(got.in_common, 3);
  EXPECT_EQ(got.same_position, 3);  // of equal scores the lower index comes first
  EXPECT_EQ(got.margin, 0);
  EXPECT_EQ(got.disorder, 0);
}

TEST(CompareSelection, AnotherOrderIsTheSameSet) {
  const auto got = agreement(floats({4}, {1, 5, 3, 4}), indices({3}, {3, 1, 2}));
  EXPECT_EQ(got.in_common, 3);
  EXPECT_EQ(got.same_position, 1);
  EXPECT_EQ(got.margin, 0);
  EXPECT_EQ(got.disorder, 1);  // 5 stands behind 4
}

TEST(CompareSelection, MarginIsBetweenTheBestLeftOutAndTheWorstTaken) {
  // The reference takes 0, 1, 2 (9, 8, 7); the candidate 0, 3, 4 (9, 6, 2).
  const auto got = agreement(floats({5}, {9, 8, 7, 6, 2}), indices({3}, {0, 3, 4}));
  EXPECT_EQ(got.in_common, 1);
  EXPECT_EQ(got.margin, 6);
  EXPECT_EQ(got.left_out, 1);
  EXPECT_EQ(got.taken, 4);
}

TEST(CompareSelection, AlongAnyAxisSmallestAndWithoutTheAxis) {
  // Columns: [1,4], [2,3]; ArgMin without keepdims.
  SelectionSpec smallest{0, false, true};
  const auto got = agreement(floats({2, 2}, {1, 2, 4, 3}), indices({2}, {0, 1}), smallest);
  EXPECT_EQ(got.lanes, 2);
  EXPECT_EQ(got.in_common, 1);
  EXPECT_EQ(got.margin, 1);
  EXPECT_EQ(got.margin_lane, 1);
  EXPECT_EQ(got.left_out, 0);
}

TEST(CompareSelection, InvalidIndicesAreCounted) {
  const auto got = agreement(floats({4}, {4, 3, 2, 1}), indices({3}, {0, 0, 7}));
  EXPECT_EQ(got.invalid, 2);
  EXPECT_EQ(selection_check("topk", got, none()).verdict, Verdict::kFail);
}

TEST(CompareSelection, NanIsNeverChosenByTheReference) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto got = agreement(floats({3}, {nan, 1, 2}), indices({2}, {2, 0}));
  EXPECT_EQ(got.in_common, 1);
  EXPECT_EQ(got.margin, std::numeric_limits<double>::infinity());
}

TEST(CompareSelection, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(compare_selection(floats({2, 4}, std::vector<float>(8)),
                                indices({3, 2}, {0, 1, 2, 0, 1, 2}), {})
                  .status()
                  .message(),
              HasSubstr("int64 [3,2]"));
  EXPECT_FALSE(compare_selection(floats({2}, {1, 2}), indices({3}, {0, 1, 0}), {}).ok());
  EXPECT_FALSE(compare_selection(floats({2}, {1, 2}), floats({1}, {0}), {}).ok());
}

TEST(SelectionCheck, ATieWithinTheLimitOfTwoScoresPasses) {
  const Tensor scores = floats({3}, {0.5F, 0.25F, 0.125F});
  const auto got = agreement(scores, indices({1}, {1}));
  EXPECT_EQ(got.margin, 0.25);
  const Check tie = selection_check("topk", got, {0.125, "0.125 of storage"});
  EXPECT_EQ(tie.verdict, Verdict::kPass);
  EXPECT_THAT(tie.note, HasSubstr("0 of 1 chosen alike"));
  EXPECT_THAT(tie.limit.origin, HasSubstr("0.125 of storage"));
  EXPECT_EQ(selection_check("topk", got, {0.12, ""}).verdict, Verdict::kFail);
}

TEST(SelectionCheck, SaysThatOnlyTheOrderDiffers) {
  const auto got = agreement(floats({3}, {3, 2, 1}), indices({2}, {1, 0}));
  const Check check = selection_check("topk", got, {0, ""});
  EXPECT_EQ(check.verdict, Verdict::kPass);
  EXPECT_THAT(check.note,
              HasSubstr("2 of 2 chosen alike, 0 at the same place; the sets are equal"));
}

TEST(SelectionAgreement, JoinsToTheWorst) {
  auto total = agreement(floats({3}, {3, 2, 1}), indices({1}, {0}));
  join_worst(total, agreement(floats({3}, {3, 2, 1}), indices({1}, {2})));
  EXPECT_EQ(total.lanes, 2);
  EXPECT_EQ(total.in_common, 1);
  EXPECT_EQ(total.margin, 2);
}

// Each step upwards is within the limit, all of them together are not.
TEST(Selection, AReversedOrderIsSaidBesideASetThatIsRight) {
  const Tensor scores = Tensor::from<float>(DType::kFloat32, {4}, {0.5F, 0.625F, 0.75F, 0.875F});
  const Tensor taken = Tensor::from<std::int64_t>(DType::kInt64, {4}, {0, 1, 2, 3});
  const auto got = compare_selection(scores, taken, {});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->disorder, 0.375);
  const Check check = selection_check("topk", *got, {0.0625, ""});
  EXPECT_EQ(check.verdict, Verdict::kPass);
  EXPECT_NE(check.note.find("read row 0"), std::string::npos);
  EXPECT_EQ(selection_check("topk", *got, {0.25, ""}).note.find("read row 0"), std::string::npos);
}

TEST(UsableIndices, StayInRangeAndTakeTheDtype) {
  const Tensor in = Tensor::from<std::int32_t>(DType::kInt32, {3}, {-2, 1, 9});
  const Tensor out = usable_indices(in, DType::kInt64, {4});
  const auto* p = out.data<std::int64_t>();
  EXPECT_THAT(std::vector<std::int64_t>(p, p + 3), testing::ElementsAre(0, 1, 3));
}

}  // namespace
}  // namespace tenonnx
