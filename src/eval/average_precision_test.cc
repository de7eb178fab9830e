// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Cases that can be computed by hand. tests/coco_reference compares with pycocotools.
#include "eval/average_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

// Means of at most 101 * 10 doubles: some 1e-15; the definition's own bound against pycocotools.
constexpr double kTolerance = 1e-9;

struct Case {
  CocoDataset dataset;
  std::vector<CocoResult> results;
  Case(int images, int categories) {
    for (int i = 1; i <= images; ++i) dataset.images.push_back({i, "", 640, 480});
    for (int i = 1; i <= categories; ++i) dataset.categories.push_back({i, ""});
  }
  void object(int image, int category, CocoBox box, bool crowd = false) {
    const auto id = static_cast<std::int64_t>(dataset.annotations.size()) + 1;
    dataset.annotations.push_back({id, image, category, box, box[2] * box[3], crowd, false});
  }
  void result(int image, int category, CocoBox box, double score) {
    results.push_back({image, category, box, score});
  }
  CocoEvaluation evaluate() const {
    auto evaluation = CocoEvaluation::create(dataset, results);
    EXPECT_TRUE(evaluation.ok()) << evaluation.status().message();
    return std::move(evaluation).value();
  }
  CocoFigures figures() const { return evaluate().figures(); }
};

constexpr CocoBox kSquare = {100, 100, 40, 40};  // area 1600: medium
constexpr CocoBox kOther = {300, 300, 40, 40};

TEST(AveragePrecision, OnePerfectDetection) {
  Case c(1, 1);
  c.object(1, 1, kSquare);
  c.result(1, 1, kSquare, 0.9);
  const CocoFigures f = c.figures();
  for (double figure : {f.ap, f.ap50, f.ap75, f.ap_medium, f.ar1, f.ar10, f.ar100, f.ar_medium})
    EXPECT_NEAR(figure, 1, kTolerance);
  for (double figure : {f.ap_small, f.ap_large, f.ar_small, f.ar_large}) EXPECT_EQ(figure, -1);
}

TEST(AveragePrecision, NothingAnnotatedIsMinusOneNothingFoundIsZero) {
  Case c(1, 1);
  EXPECT_EQ(c.figures().ap, -1);
  c.result(1, 1, kSquare, 0.9);
  EXPECT_EQ(c.figures().ap, -1);
  c.results.clear();
  c.object(1, 1, kSquare);
  EXPECT_EQ(c.figures().ap, 0);
  EXPECT_EQ(c.figures().ar100, 0);
}

// A false positive above the true one halves the precision at every recall.
TEST(AveragePrecision, FalsePositiveFirst) {
  Case c(1, 1);
  c.object(1, 1, kSquare);
  c.result(1, 1, kOther, 0.9);
  c.result(1, 1, kSquare, 0.8);
  EXPECT_NEAR(c.figures().ap, 0.5, kTolerance);
  EXPECT_EQ(c.figures().ar1, 0);
  EXPECT_EQ(c.figures().ar10, 1);
}

// One of two objects found: precision 1 up to recall 0.5, 51 of the 101 points.
TEST(AveragePrecision, HalfRecallIsFiftyOneOfHundredAndOnePoints) {
  Case c(2, 1);
  c.object(1, 1, kSquare);
  c.object(2, 1, kSquare);
  c.result(1, 1, kSquare, 0.9);
  EXPECT_NEAR(c.figures().ap, 51.0 / 101, kTolerance);
  EXPECT_NEAR(c.figures().ar100, 0.5, kTolerance);
}

// 40 x 40 against 30 x 40 inside it: IoU 0.75, so six of the ten thresholds (0.50 to 0.75) hold.
TEST(AveragePrecision, ThresholdsIncludeTheirBound) {
  Case c(1, 1);
  c.object(1, 1, kSquare);
  c.result(1, 1, {100, 100, 30, 40}, 0.9);
  const CocoFigures f = c.figures();
  EXPECT_NEAR(f.ap, 0.6, kTolerance);
  EXPECT_NEAR(f.ap50, 1, kTolerance);
  EXPECT_NEAR(f.ap75, 1, kTolerance);
}

TEST(AveragePrecision, DetectionsOnACrowdAreNeitherRightNorWrong) {
  Case c(1, 1);
  c.object(1, 1, kSquare);
  c.object(1, 1, {300, 300, 300, 150}, true);
  for (int i = 0; i < 5; ++i) c.result(1, 1, {300.0 + 10 * i, 310, 40, 40}, 0.9);
  c.result(1, 1, kSquare, 0.8);
  EXPECT_NEAR(c.figures().ap, 1, kTolerance);
}

TEST(AveragePrecision, DuplicateDetectionIsAFalsePositive) {
  Case c(1, 1);
  c.object(1, 1, kSquare);
  c.object(1, 1, kOther);
  c.result(1, 1, kSquare, 0.9);
  c.result(1, 1, kSquare, 0.8);
  c.result(1, 1, kOther, 0.7);
  // Precision 1 up to recall 0.5 (51 points), then 2/3.
  EXPECT_NEAR(c.figures().ap, (51 + 50 * 2.0 / 3) / 101, kTolerance);
}

TEST(AveragePrecision, OnlyTheFirstHundredOfAClassAndImageCount) {
  Case c(1, 2);
  c.object(1, 1, kSquare);
  c.object(1, 2, kSquare);
  for (int i = 0; i < 100; ++i) c.result(1, 1, kOther, 0.9);
  c.result(1, 1, kSquare, 0.8);
  c.result(1, 2, kSquare, 0.8);
  const CocoEvaluation evaluation = c.evaluate();
  EXPECT_NEAR(evaluation.figures().ap, 0.5, kTolerance);
  const auto by_category = evaluation.ap_by_category();
  EXPECT_EQ(by_category[0], (std::pair<std::int64_t, double>(1, 0)));
  EXPECT_NEAR(by_category[1].second, 1, kTolerance);
}

TEST(AveragePrecision, ClassWithoutObjectsIsLeftOutOfTheMean) {
  Case c(1, 2);
  c.object(1, 1, kSquare);
  c.result(1, 1, kSquare, 0.9);
  c.result(1, 2, kSquare, 0.9);
  EXPECT_NEAR(c.figures().ap, 1, kTolerance);
  EXPECT_EQ(c.evaluate().ap_by_category()[1].second, -1);
}

// Small and medium share the bound 32 x 32.
TEST(AveragePrecision, AreaBoundsBelongToBothSides) {
  Case c(1, 1);
  c.object(1, 1, {0, 0, 32, 32});
  c.result(1, 1, {0, 0, 32, 32}, 0.9);
  EXPECT_NEAR(c.figures().ap_small, 1, kTolerance);
  EXPECT_NEAR(c.figures().ap_medium, 1, kTolerance);
  EXPECT_EQ(c.figures().ap_large, -1);
}

TEST(AveragePrecision, WeightsAreCopiesOfImages) {
  Case c(3, 1), copied(6, 1);
  c.object(1, 1, kSquare);
  c.object(2, 1, kSquare);
  c.object(3, 1, kSquare);
  c.result(1, 1, kSquare, 0.9);
  c.result(2, 1, kOther, 0.8);
  c.result(3, 1, kSquare, 0.7);
  int image = 1;
  for (int copy = 0; copy < 3; ++copy, ++image) {  // image 2, three times
    copied.object(image, 1, kSquare);
    copied.result(image, 1, kOther, 0.8);
  }
  for (int copy = 0; copy < 2; ++copy, ++image) {  // image 3, twice
    copied.object(image, 1, kSquare);
    copied.result(image, 1, kSquare, 0.7);
  }
  const std::vector<int> once = {1, 1, 1}, weights = {0, 3, 2}, none = {0, 0, 0};
  EXPECT_NEAR(c.evaluate().weighted_ap(weights), copied.figures().ap, kTolerance);
  EXPECT_EQ(c.evaluate().weighted_ap(once), c.figures().ap);
  EXPECT_EQ(c.evaluate().weighted_ap(none), -1);
}

TEST(AveragePrecision, RefusesResultsItCannotPlace) {
  Case c(1, 1);
  c.result(2, 1, kSquare, 0.9);
  const auto unknown = CocoEvaluation::create(c.dataset, c.results);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(unknown.status().message(), HasSubstr("result 0 is of image 2"));
  c.results = {{1, 1, kSquare, std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_THAT(CocoEvaluation::create(c.dataset, c.results).status().message(),
              HasSubstr("not finite"));
}

TEST(AveragePrecision, NotesSayWhatWasNotCounted) {
  Case c(1, 1);
  c.object(1, 1, kSquare);
  c.dataset.annotations[0].id = 0;
  c.result(1, 1, kSquare, 0.9);
  c.result(1, 99, kSquare, 0.9);
  const CocoEvaluation evaluation = c.evaluate();
  ASSERT_EQ(evaluation.notes().size(), 2u);
  EXPECT_THAT(evaluation.notes()[0], HasSubstr("id 0"));
  EXPECT_THAT(evaluation.notes()[1], HasSubstr("1 results are of categories"));
  EXPECT_EQ(evaluation.figures().ap, 0);
}

TEST(CocoFigures, NamesAndOrderAreThoseOfSummarize) {
  CocoFigures f;
  f.ar_large = 0.5;
  f.ap75 = 0.25;
  EXPECT_EQ(f.stats()[11], 0.5);
  EXPECT_EQ(f.stats()[2], 0.25);
  const Json json = to_json(f);
  EXPECT_EQ(json["ar_large"], 0.5);
  EXPECT_EQ(json["ap75"], 0.25);
  EXPECT_EQ(json.size(), 12u);
}

}  // namespace
}  // namespace tenonnx
