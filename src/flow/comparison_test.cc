// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<Detection> five_boxes(float score) {
  std::vector<Detection> out;
  for (int i = 0; i < 5; ++i) {
    const auto x = static_cast<float>(100 * i);
    out.push_back({i, score, {x, 0, x + 50, 50}});
  }
  return out;
}

Observation observe(std::vector<float> feature, float score = 0.9F) {
  Observation out;
  const auto n = static_cast<std::int64_t>(feature.size());
  out.boundaries.emplace("feature_0", Tensor::from<float>(DType::kFloat32, {1, n}, feature));
  out.outputs.emplace("scores", Tensor::from<float>(DType::kFloat32, {1, 1}, {score}));
  out.outputs.emplace("labels", Tensor::from<std::int64_t>(DType::kInt64, {1, 1}, {3}));
  out.detections = five_boxes(score);
  return out;
}

ChainComparison comparison() {
  return ChainComparison(TaskGates::heterogeneous(), {"feature_0", "labels", "scores"});
}

const Check& named(const std::vector<Check>& checks, std::string_view name) {
  for (const Check& check : checks)
    if (check.name == name) return check;
  static const Check none;
  ADD_FAILURE() << "no check '" << name << "'";
  return none;
}

TEST(ChainComparison, CloseFeaturesAndEqualBoxesPass) {
  ChainComparison c = comparison();
  for (const char* image : {"a.png", "b.png"})
    ASSERT_TRUE(c.add(image, observe({1, 2, 3}), observe({1, 2, 3.01F})).ok());
  EXPECT_EQ(overall_verdict(c.checks(false)), Verdict::kPass);
  EXPECT_EQ(c.images().size(), 2u);
  // Labels are compared as sets, never as numbers.
  for (const TensorFigures& figures : c.figures()) EXPECT_NE(figures.name, "labels");
}

TEST(ChainComparison, AnOverflowFailsAndNamesTheFirstTensor) {
  ChainComparison c = comparison();
  ASSERT_TRUE(c.add("a.png", observe({1, 2, 3}), observe({1, 2, 3})).ok());
  Observation broken = observe({1, kInf, 3});
  broken.outputs.at("scores").mutable_data<float>()[0] = kInf;
  ASSERT_TRUE(c.add("b.png", observe({1, 2, 3}), broken).ok());
  EXPECT_EQ(c.first_broken(), "feature_0");
  const auto checks = c.checks(false);
  const Check& finite = named(checks, "Inf or NaN where the reference is finite");
  EXPECT_EQ(finite.verdict, Verdict::kFail);
  EXPECT_EQ(finite.value, 2);
  EXPECT_THAT(finite.note, HasSubstr("first in 'feature_0', element 1, of 'b.png'"));
}

TEST(ChainComparison, MaskedConstantsAreNoFailure) {
  ChainComparison c = comparison();
  for (const char* image : {"a.png", "b.png"})
    ASSERT_TRUE(c.add(image, observe({1, kInf, 3}), observe({1, kInf, 3})).ok());
  EXPECT_EQ(overall_verdict(c.checks(false)), Verdict::kPass);
}

TEST(ChainComparison, AFeatureOfAnotherDirectionFails) {
  ChainComparison c = comparison();
  ASSERT_TRUE(c.add("a.png", observe({1, 2, 3}), observe({1, 2, 3})).ok());
  ASSERT_TRUE(c.add("b.png", observe({1, 0, 0}), observe({1, 1, 0})).ok());
  const auto checks = c.checks(false);
  const Check& cosine = named(checks, "feature_0: cosine");
  EXPECT_EQ(cosine.verdict, Verdict::kFail);
  EXPECT_NEAR(cosine.value, 0.70710678, 1e-6);  // 45 degrees
  EXPECT_THAT(cosine.note, HasSubstr("b.png"));
}

// Both chose the same rows, in another order.
TEST(ChainComparison, TheCosineOfSelectedRowsIsNoGate) {
  for (const bool selected : {false, true}) {
    ChainComparison c = comparison();
    if (selected) c.set_selected({"feature_0"});
    for (const char* image : {"a.png", "b.png"})
      ASSERT_TRUE(c.add(image, observe({1, 9, kInf}), observe({kInf, 1, 9})).ok());
    EXPECT_EQ(overall_verdict(c.checks(false)), selected ? Verdict::kPass : Verdict::kFail);
    EXPECT_EQ(c.boundaries(), 1u);
    EXPECT_EQ(c.selected_boundaries(), selected ? 1u : 0u);
    EXPECT_EQ(c.figures()[0].selected, selected);
    EXPECT_TRUE(c.figures()[0].error.cosine.has_value());
  }
  // One Inf more than the reference has is one too many, wherever it is.
  ChainComparison c = comparison();
  c.set_selected({"feature_0"});
  ASSERT_TRUE(c.add("a.png", observe({1, 9, kInf}), observe({kInf, kInf, 9})).ok());
  EXPECT_EQ(overall_verdict(c.checks(false)), Verdict::kFail);
  EXPECT_EQ(c.first_broken(), "feature_0");
}

// NonMaxSuppression chooses how many, too.
TEST(ChainComparison, ADifferentNumberOfSelectedRowsIsNoError) {
  ChainComparison c = comparison();
  c.set_selected({"feature_0"});
  EXPECT_TRUE(c.add("a.png", observe({1, 2, 3}), observe({1, 2})).ok());
}

TEST(ChainComparison, RandomInputsNeitherPassNorFail) {
  ChainComparison c = comparison();
  ASSERT_TRUE(c.add("random 0", observe({1, 2, 3}), observe({1, 2, 3})).ok());
  ASSERT_TRUE(c.add("random 1", observe({1, 0, 0}), observe({0, 1, 0}, 0.3F)).ok());
  EXPECT_EQ(overall_verdict(c.checks(false)), Verdict::kFail);
  EXPECT_EQ(overall_verdict(c.checks(true)), Verdict::kInconclusive);
  // But a value that is not finite is wrong on any input.
  ASSERT_TRUE(c.add("random 2", observe({1, 0, 0}), observe({1, kInf, 0})).ok());
  EXPECT_EQ(overall_verdict(c.checks(true)), Verdict::kFail);
}

TEST(ChainComparison, ShapesThatDifferAreAnError) {
  ChainComparison c = comparison();
  const Status status = c.add("a.png", observe({1, 2, 3}), observe({1, 2}));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("tensor 'feature_0' of 'a.png'"));
}

TEST(ChainComparison, NothingComparedIsInconclusive) {
  EXPECT_EQ(overall_verdict(comparison().checks(false)), Verdict::kInconclusive);
}

}  // namespace
}  // namespace tenonnx
