// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Detections of one image, compared as sets. Selection is not arithmetic: TopK turns a difference
// of 1e-7 in a score into another order, so row i of one output says nothing about row i of the
// other. Boxes are matched first, then their values are compared.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tenonnx/base.h"
#include "tenonnx/detection.h"

namespace tenonnx {

// Intersection over union in double, in [0,1]. Equal boxes have 1, even where they have no area; a
// box with x1 < x0 or y1 < y0 counts as having no area.
double iou(const Box& a, const Box& b);

struct MatchOptions {
  // A detection above this must have a partner on the other side.
  double confidence = 0.25;
  // ... and the partner must be above this, so that 0.251 against 0.249 is a score difference of
  // 0.002 and not a lost box. The rule holds in both directions.
  double candidate_confidence = 0.20;
  // A detection that overlaps a higher-scored one of its class in the same output by at least this
  // is a duplicate query: counted and reported, its pair not gated.
  double duplicate_iou = 0.9;
  // Pairs below this are not pairs: two objects, both unmatched. COCO's lowest threshold.
  double min_iou = 0.5;
  // Scores this close are a tie that rounding may turn over: for the top class, and between an
  // original and its duplicate. The score limit of the heterogeneous gate.
  double near_tie = 0.05;
};

struct DetectionPair {
  std::int64_t reference = -1;  // indices into the two inputs
  std::int64_t candidate = -1;
  double iou = 0;
  double score_difference = 0;  // |reference - candidate|
  bool gated = true;            // false where either side is a duplicate query
};

enum class TopClass : std::uint8_t {
  kNone,     // neither side has a detection above the confidence
  kSame,     // the highest-scored detections of both sides have one class (of equal scores the
             // lower label counts)
  kNearTie,  // another class, but each side holds the other's class within near_tie of its top
  kDiffers,
};

// Counts are of detections above `confidence` ("strong") unless they say otherwise.
struct MatchResult {
  std::vector<DetectionPair> pairs;               // gated ones first, then by falling IoU
  std::vector<std::int64_t> unmatched_reference;  // strong, no duplicate, without a partner
  std::vector<std::int64_t> unmatched_candidate;
  std::int64_t reference_strong = 0;
  std::int64_t candidate_strong = 0;
  std::int64_t reference_duplicates = 0;  // of the strong ones
  std::int64_t candidate_duplicates = 0;
  std::int64_t reference_nonfinite = 0;  // detections with Inf or NaN; left out of everything
  std::int64_t candidate_nonfinite = 0;
  TopClass top_class = TopClass::kNone;
};

// Matches one to one within a class:
//  1. originals (detections that are no duplicate query) with originals, greedily from the highest
//     IoU down, at least one of the two being strong;
//  2. then what is left, duplicates included, in the same way; these pairs are not gated. A
//     duplicate that stays alone is not an unmatched box.
// A duplicate within near_tie of its original's score may lend the pair its box: where two
// near-tied boxes exchange their order, the pair's IoU is the best among them.
// Equal IoU: the smaller score difference first, then the higher reference score, the higher
// candidate score, the smaller box coordinates (x0, y0, x1, y1; reference before candidate), so
// that the result depends on the values and not on the order of the rows; between detections equal
// in everything the lower row comes first.
MatchResult match_detections(std::span<const Detection> reference,
                             std::span<const Detection> candidate,
                             const MatchOptions& options = {});

// Cosine of the scores of two outputs, each sorted downward: the order in which TopK delivers them,
// so that rows correspond by rank (unlike labels and boxes, for which rank means nothing). A
// shorter output is filled with 0. NaN where both are empty or a score is not finite.
double scores_cosine(std::span<const Detection> reference, std::span<const Detection> candidate);

}  // namespace tenonnx
