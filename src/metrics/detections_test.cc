// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "metrics/detections.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

namespace tenonnx {
namespace {

using Detections = std::vector<Detection>;

// A 10 x 10 box at (x, y); shifted by s it overlaps itself by IoU (10 - s) / (10 + s).
Box box(float x, float y = 0) { return {x, y, x + 10, y + 10}; }

int gated(const MatchResult& m) {
  return static_cast<int>(std::count_if(m.pairs.begin(), m.pairs.end(),
                                        [](const DetectionPair& p) { return p.gated; }));
}

TEST(Iou, ByHand) {
  EXPECT_EQ(iou(box(0), box(0)), 1);
  EXPECT_DOUBLE_EQ(iou(box(0), box(5)), 50.0 / 150);
  EXPECT_EQ(iou(box(0), box(10)), 0);  // they touch
  EXPECT_EQ(iou(box(0), box(20)), 0);
  EXPECT_DOUBLE_EQ(iou({0, 0, 10, 10}, {2, 2, 4, 4}), 0.04);
}

TEST(Iou, BoxesWithoutArea) {
  const Box line = {3, 3, 3, 9}, turned = {9, 9, 3, 3};
  EXPECT_EQ(iou(line, line), 1);
  EXPECT_EQ(iou(turned, turned), 1);
  EXPECT_EQ(iou(line, box(0)), 0);
  EXPECT_EQ(iou(turned, box(0)), 0);
}

TEST(Match, IdenticalOutputsMatchWhole) {
  const Detections d = {
      {0, 0.9F, box(0)}, {1, 0.8F, box(0)}, {0, 0.3F, box(50)}, {2, 0.1F, box(9)}};
  const MatchResult m = match_detections(d, d);
  EXPECT_EQ(gated(m), 3);  // the fourth is below both confidences
  EXPECT_TRUE(m.unmatched_reference.empty());
  EXPECT_TRUE(m.unmatched_candidate.empty());
  EXPECT_EQ(m.top_class, TopClass::kSame);
  for (const DetectionPair& p : m.pairs) {
    EXPECT_EQ(p.reference, p.candidate);
    EXPECT_EQ(p.iou, 1);
    EXPECT_EQ(p.score_difference, 0);
  }
}

TEST(Match, GreedyFromTheHighestIouDown) {
  // The candidate overlaps both references; the nearer one takes it although it comes later.
  const Detections r = {{0, 0.9F, box(0)}, {0, 0.8F, box(3)}};
  const Detections c = {{0, 0.9F, box(2)}};
  const MatchResult m = match_detections(r, c);
  ASSERT_EQ(m.pairs.size(), 1u);
  EXPECT_EQ(m.pairs[0].reference, 1);
  EXPECT_DOUBLE_EQ(m.pairs[0].iou, 9.0 / 11);
  EXPECT_EQ(m.unmatched_reference, std::vector<std::int64_t>{0});
}

TEST(Match, OneTrueClassSwapIsFound) {
  const Detections r = {{0, 0.9F, box(0)}, {1, 0.8F, box(50)}};
  const Detections c = {{1, 0.9F, box(0)}, {0, 0.8F, box(50)}};
  const MatchResult m = match_detections(r, c);
  EXPECT_TRUE(m.pairs.empty());
  EXPECT_EQ(m.unmatched_reference.size(), 2u);
  EXPECT_EQ(m.unmatched_candidate.size(), 2u);
  EXPECT_EQ(m.top_class, TopClass::kDiffers);
}

// A box just above the confidence on one side and just below on the other is no lost box.
TEST(Match, WeakPartnerAboveTheLowerConfidenceIsEnoughInBothDirections) {
  const Detections strong = {{0, 0.251F, box(0)}};
  const Detections weak = {{0, 0.249F, box(0)}};
  const Detections lost = {{0, 0.199F, box(0)}};
  for (bool turned : {false, true}) {
    const MatchResult m = turned ? match_detections(weak, strong) : match_detections(strong, weak);
    EXPECT_EQ(gated(m), 1);
    EXPECT_NEAR(m.pairs[0].score_difference, 0.002, 1e-7);  // two roundings of float32
    EXPECT_TRUE(m.unmatched_reference.empty() && m.unmatched_candidate.empty());
    EXPECT_EQ(m.top_class, TopClass::kSame);
    const MatchResult n = turned ? match_detections(lost, strong) : match_detections(strong, lost);
    EXPECT_EQ(n.unmatched_reference.size() + n.unmatched_candidate.size(), 1u);
    EXPECT_EQ(n.top_class, TopClass::kDiffers);
  }
}

TEST(Match, TwoWeakBoxesAreNoPair) {
  const Detections weak = {{0, 0.24F, box(0)}};
  const MatchResult m = match_detections(weak, weak);
  EXPECT_TRUE(m.pairs.empty());
  EXPECT_EQ(m.reference_strong, 0);
  EXPECT_EQ(m.top_class, TopClass::kNone);
}

// box(0.2) overlaps box(0) by 9.8 / 10.2 = 0.96.
TEST(Match, DuplicateQueryIsCountedAndNotGated) {
  const Detections r = {{0, 0.9F, box(0)}, {0, 0.4F, box(0.2F)}};
  const Detections c = {{0, 0.9F, box(0)}};
  const MatchResult m = match_detections(r, c);
  EXPECT_EQ(m.reference_duplicates, 1);
  EXPECT_EQ(m.candidate_duplicates, 0);
  EXPECT_EQ(gated(m), 1);
  EXPECT_TRUE(m.unmatched_reference.empty());
  // Present on both sides, with scores far apart: paired, but not gated.
  const Detections d = {{0, 0.9F, box(0)}, {0, 0.7F, box(0.2F)}};
  const MatchResult both = match_detections(r, d);
  ASSERT_EQ(both.pairs.size(), 2u);
  EXPECT_TRUE(both.pairs[0].gated);
  EXPECT_FALSE(both.pairs[1].gated);
  EXPECT_NEAR(both.pairs[1].score_difference, 0.3, 1e-7);
}

TEST(Match, AnotherClassOrLessOverlapIsNoDuplicate) {
  const Detections other_class = {{0, 0.9F, box(0)}, {1, 0.4F, box(0)}};
  EXPECT_EQ(match_detections(other_class, other_class).reference_duplicates, 0);
  // IoU 9.4 / 10.6 = 0.887.
  const Detections apart = {{0, 0.9F, box(0)}, {0, 0.4F, box(0.6F)}};
  EXPECT_EQ(match_detections(apart, apart).reference_duplicates, 0);
  EXPECT_EQ(gated(match_detections(apart, apart)), 2);
}

// The strongest boxes are compared with each other even where a duplicate lies nearer: else the
// object would escape the gates, both of its pairs holding a duplicate.
TEST(Match, DuplicateDoesNotTakeTheOriginalsPartner) {
  const Detections r = {{0, 0.9F, box(0)}, {0, 0.3F, box(0.1F)}};
  const Detections c = {{0, 0.6F, box(0.1F)}, {0, 0.3F, box(0)}};
  const MatchResult m = match_detections(r, c);
  ASSERT_EQ(gated(m), 1);
  EXPECT_EQ(m.pairs[0].reference, 0);
  EXPECT_EQ(m.pairs[0].candidate, 0);
  EXPECT_NEAR(m.pairs[0].score_difference, 0.3, 1e-7);
}

// Two queries on one object with scores 0.0001 apart: rounding turns their order over, and the
// originals of the two sides are different queries, 0.4 pixels (IoU 0.923) apart.
TEST(Match, NearTiedDuplicateLendsItsBox) {
  const Detections r = {{0, 0.5001F, box(0)}, {0, 0.5F, box(0.4F)}};
  const Detections c = {{0, 0.5F, box(0)}, {0, 0.5001F, box(0.4F)}};
  const MatchResult m = match_detections(r, c);
  ASSERT_EQ(gated(m), 1);
  EXPECT_EQ(m.pairs[0].iou, 1);
  // Where the scores are far apart the boxes of the originals count.
  const Detections far_r = {{0, 0.5001F, box(0)}, {0, 0.4F, box(0.4F)}};
  const Detections far_c = {{0, 0.4F, box(0)}, {0, 0.5001F, box(0.4F)}};
  EXPECT_NEAR(match_detections(far_r, far_c).pairs[0].iou, 0.923, 0.001);
}

// On one side the overlap is just below the duplicate rule, on the other just above.
TEST(Match, DuplicateOnOneSideOnlyIsNoLostBox) {
  const Detections r = {{0, 0.9F, box(0)}, {0, 0.5F, box(0.52F)}};  // IoU 0.901
  const Detections c = {{0, 0.9F, box(0)}, {0, 0.5F, box(0.53F)}};  // IoU 0.899
  const MatchResult m = match_detections(r, c);
  EXPECT_EQ(m.reference_duplicates, 1);
  EXPECT_EQ(m.candidate_duplicates, 0);
  EXPECT_EQ(m.pairs.size(), 2u);
  EXPECT_EQ(gated(m), 1);
  EXPECT_TRUE(m.unmatched_reference.empty() && m.unmatched_candidate.empty());
}

TEST(Match, CollapsedObjectIsFound) {
  const Detections r = {{0, 0.9F, box(0)}, {0, 0.8F, box(50)}};
  const Detections c = {{0, 0.9F, box(0)}, {0, 0.8F, box(0.1F)}};
  const MatchResult m = match_detections(r, c);
  EXPECT_EQ(m.unmatched_reference, std::vector<std::int64_t>{1});
  EXPECT_EQ(m.candidate_duplicates, 1);
}

TEST(Match, BelowTheLeastIouIsNoPair) {
  const Detections r = {{0, 0.9F, box(0)}}, c = {{0, 0.9F, box(4)}};  // IoU 6 / 14
  EXPECT_TRUE(match_detections(r, c).pairs.empty());
  MatchOptions options;
  options.min_iou = 0.4;
  EXPECT_EQ(match_detections(r, c, options).pairs.size(), 1u);
}

TEST(Match, TopClassNearTieNeedsBothSides) {
  const Detections r = {{0, 0.80F, box(0)}, {1, 0.79F, box(50)}};
  const Detections turned = {{0, 0.79F, box(0)}, {1, 0.80F, box(50)}};
  EXPECT_EQ(match_detections(r, turned).top_class, TopClass::kNearTie);
  const Detections clear = {{0, 0.60F, box(0)}, {1, 0.80F, box(50)}};
  EXPECT_EQ(match_detections(r, clear).top_class, TopClass::kDiffers);
}

TEST(Match, NonFiniteDetectionsAreCountedAndLeftOut) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const Detections r = {{0, 0.9F, box(0)}};
  const Detections c = {{0, nan, box(0)}, {0, 0.9F, {0, 0, inf, 10}}};
  const MatchResult m = match_detections(r, c);
  EXPECT_EQ(m.candidate_nonfinite, 2);
  EXPECT_EQ(m.candidate_strong, 0);
  EXPECT_EQ(m.unmatched_reference.size(), 1u);
  EXPECT_TRUE(std::isnan(scores_cosine(r, c)));
}

TEST(Match, NothingAgainstNothing) {
  const MatchResult m = match_detections({}, {});
  EXPECT_TRUE(m.pairs.empty());
  EXPECT_EQ(m.top_class, TopClass::kNone);
}

// Scores and boxes on a coarse grid make ties of every kind. The order of the rows must not decide.
TEST(Match, OrderOfTheRowsDoesNotMatter) {
  std::mt19937 random(7);
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    Detections r, c;
    for (Detections* side : {&r, &c}) {
      for (int i = draw(9); i >= 0; --i) {
        side->push_back({draw(2), 0.2F + 0.1F * static_cast<float>(draw(5)),
                         box(static_cast<float>(draw(4)), 0.25F * static_cast<float>(draw(4)))});
      }
    }
    const auto values = [](const Detections& a, const Detections& b, const MatchResult& m) {
      std::multiset<std::tuple<double, double, bool, float, float>> set;
      for (const DetectionPair& p : m.pairs) {
        set.insert({p.iou, p.score_difference, p.gated,
                    a[static_cast<std::size_t>(p.reference)].box.x0,
                    b[static_cast<std::size_t>(p.candidate)].box.x0});
      }
      return std::tuple(set, m.unmatched_reference.size(), m.unmatched_candidate.size(),
                        m.reference_duplicates, m.candidate_duplicates, m.top_class);
    };
    const auto before = values(r, c, match_detections(r, c));
    std::shuffle(r.begin(), r.end(), random);
    std::shuffle(c.begin(), c.end(), random);
    ASSERT_EQ(before, values(r, c, match_detections(r, c))) << "round " << round;
  }
}

TEST(ScoresCosine, ComparesByRank) {
  const Detections r = {{0, 0.75F, box(0)}, {1, 1.0F, box(9)}};
  const Detections c = {{1, 1.0F, box(9)}, {0, 0.75F, box(0)}};
  EXPECT_DOUBLE_EQ(scores_cosine(r, c), 1);
  const Detections one = {{0, 1.0F, box(0)}};
  EXPECT_DOUBLE_EQ(scores_cosine(r, one), 0.8);  // (1, 0.75) against (1, 0): 1 / 1.25
  EXPECT_EQ(scores_cosine(r, {}), 0);
  EXPECT_TRUE(std::isnan(scores_cosine({}, {})));
}

}  // namespace
}  // namespace tenonnx
