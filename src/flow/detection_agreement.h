// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// How near two sets of detections of one image are, as one number without a threshold of its own:
// for ranking explanations, not for a verdict (metrics/detections.h matches for verdicts).
#pragma once

#include <span>

#include "tenonnx/detection.h"

namespace tenonnx {

// Over the detections that score at least `confidence` on either side.
struct DetectionAgreement {
  // 0: the same; 1: nothing in common. The mean over detections of half the relative difference of
  // the scores and half the largest difference of a coordinate relative to the box, both at most 1,
  // against the best partner of the same class; 1 without one.
  double distance = 1;
  // The same of classes and scores alone, by rank within a class: independent of boxes.
  double score_distance = 1;
  double scores_cosine = 0;  // a detection without partner counts as a pair with score 0
  int matched = 0;           // detections of `other` with a partner whose box differs by less than
                             // half its size
  int total = 0;             // detections of `other`
};

DetectionAgreement agreement(std::span<const Detection> other, std::span<const Detection> mine,
                             double confidence);

}  // namespace tenonnx
