// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// COCO average precision and recall of boxes: the twelve figures, equal to pycocotools (2.0.x,
// COCOeval with iouType 'bbox' and its default parameters) to 1e-9.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eval/coco.h"

namespace tenonnx {

// In [0,1], or -1 where no object of that kind is annotated. IoU 0.50:0.95 in steps of 0.05, all
// areas and at most 100 detections of a class in an image unless the name says otherwise; small is
// up to 32 x 32 pixels, medium up to 96 x 96, large above (both bounds belong to both sides).
struct CocoFigures {
  double ap = -1, ap50 = -1, ap75 = -1;
  double ap_small = -1, ap_medium = -1, ap_large = -1;
  double ar1 = -1, ar10 = -1, ar100 = -1;
  double ar_small = -1, ar_medium = -1, ar_large = -1;
  // In the order in which COCOeval.summarize prints them (its `stats`).
  std::array<double, 12> stats() const;
  static std::span<const std::string_view, 12> names();  // "ap", "ap50", ...
};

// Matches once; then gives figures over all images or over resampled ones.
class CocoEvaluation {
 public:
  // InvalidArgument where a result names an image that the data set lacks, or has a score or box
  // that is not finite. Results of a category that the data set lacks are not counted, as in
  // pycocotools. Ids must be unique (read_coco_annotations sees to that).
  static Result<CocoEvaluation> create(const CocoDataset& dataset,
                                       std::span<const CocoResult> results);
  CocoEvaluation(CocoEvaluation&&) noexcept;
  CocoEvaluation& operator=(CocoEvaluation&&) noexcept;
  ~CocoEvaluation();

  CocoFigures figures() const;
  std::size_t image_count() const;
  // AP (0.50:0.95, all areas, 100 detections) of each category, by rising id; -1 without objects.
  std::vector<std::pair<std::int64_t, double>> ap_by_category() const;
  // AP where image i (in the order of rising id) occurs image_weights[i] times; -1 where no object
  // is left. image_weights has image_count() elements.
  double weighted_ap(std::span<const int> image_weights) const;
  // What a reader should know: an annotation with id 0 (pycocotools takes a detection that matches
  // it for unmatched, and so it is here), results of unknown categories.
  const std::vector<std::string>& notes() const;

 private:
  struct State;
  explicit CocoEvaluation(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

Json to_json(const CocoFigures& figures);

}  // namespace tenonnx
