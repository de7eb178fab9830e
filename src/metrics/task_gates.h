// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The task level: does the candidate still detect the same things? A summary over images, gates as
// data, the checks that follow, and what they do not cover.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/detections.h"
#include "metrics/limit.h"
#include "metrics/tensor_error.h"

namespace tenonnx {

// Agreed figures, not noise floors: how much a detector's output may differ before its user cares.
struct TaskGates {
  std::string name;  // named in every limit's origin: "gate of a cpu re-export"
  std::optional<double> features_cosine;  // absent: features are not gated at this level
  double scores_cosine = 0;               // at least, in every image
  double iou = 0;                         // at least, for every matched box
  double score_difference = 0;            // at most, for every matched box
  bool same_top_class = true;             // in every image (near ties: MatchOptions::near_tie)
  bool nothing_unmatched = true;
  std::int64_t min_images = 2;  // below these the verdict is INCONCLUSIVE (or FAIL)
  std::int64_t min_matched = 5;

  // The same arithmetic on the same machine: scores cosine >= 0.999, IoU >= 0.99, score
  // difference <= 0.001, same top class, nothing unmatched.
  static TaskGates cpu_reexport();
  // A part of the model on a device: features and scores cosine >= 0.99, IoU >= 0.95, score
  // difference <= 0.05, same top class, nothing unmatched.
  static TaskGates heterogeneous();
};

// Figures over images. Add every image in turn with add_image().
struct TaskSummary {
  std::int64_t images = 0;
  std::int64_t reference_boxes = 0;  // above the confidence, duplicates included
  std::int64_t candidate_boxes = 0;
  std::int64_t matched = 0;  // gated pairs
  std::int64_t unmatched_reference = 0;
  std::int64_t unmatched_candidate = 0;
  std::int64_t reference_duplicates = 0;
  std::int64_t candidate_duplicates = 0;
  std::int64_t reference_nonfinite = 0;
  std::int64_t candidate_nonfinite = 0;
  std::int64_t broken = 0;  // of the candidate's, those in images where the reference has none
  double min_iou = 1;       // of gated pairs; mean_iou() for the mean
  double sum_iou = 0;
  double max_score_difference = 0;
  // NaN until an image had detections, all of them finite.
  double min_scores_cosine = std::numeric_limits<double>::quiet_NaN();
  std::int64_t top_class_differs = 0;
  std::int64_t top_class_near_ties = 0;
  std::string min_iou_image, max_score_difference_image, min_scores_cosine_image;
  std::vector<std::string> findings;  // at most kMaxFindings sentences: which box of which image

  // What the images hold, for coverage(): of the reference's detections.
  std::int64_t images_with_boxes = 0;
  std::int64_t max_boxes_in_image = 0;
  std::int64_t near_threshold = 0;       // boxes that score less than confidence + kNearThreshold
  std::int64_t overlapping_classes = 0;  // boxes that overlap one of another class by IoU >= 0.5
  std::set<std::int64_t> labels;
  double confidence = 0;  // the options of the last add_image

  static constexpr std::size_t kMaxFindings = 20;
  static constexpr double kNearThreshold = 0.1;
  double mean_iou() const;  // NaN where nothing matched
  void add_image(std::string_view image, std::span<const Detection> reference,
                 std::span<const Detection> candidate, const MatchOptions& options = {});
};

// One check a gate, and the two on the size of the sample. A gate that fails fails on one image as
// on a hundred; a gate that holds on too small a sample leaves the whole INCONCLUSIVE, since the
// two checks on the sample are.
std::vector<Check> task_checks(const TaskSummary& summary, const TaskGates& gates);

// "<tensor>: cosine" >= gates.features_cosine. INCONCLUSIVE where the tensor has no cosine (integer
// dtype, nothing finite). Pass the join_worst of the images. Nothing where the gate is absent.
std::optional<Check> feature_check(std::string_view tensor, const TensorError& error,
                                   const TaskGates& gates);

// What the verdict is over and what it does not say, computed from the images. It never changes a
// verdict.
struct Coverage {
  // From this many boxes in an image on, crowded scenes count as covered. A convention: about
  // where a detector's queries begin to compete for neighbouring objects.
  static constexpr std::int64_t kCrowdedScene = 20;
  std::string over;  // "20 images with 73 matched boxes of classes 0, 1, 2, 3"
  // "crowded scenes: at most 7 boxes in an image", "low confidence: ...", "class confusion: ..."
  std::vector<std::string> not_covered;
};
// `classes`: names by label; a label without one is given as its number.
Coverage coverage(const TaskSummary& summary, std::span<const std::string> classes = {});
// Both in one sentence or two.
std::string to_text(const Coverage& coverage);

Json to_json(const TaskGates& gates);
Json to_json(const TaskSummary& summary);
Json to_json(const Coverage& coverage);

}  // namespace tenonnx
