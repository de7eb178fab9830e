// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Labels of the images, and the average precision of what was detected in them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "eval/average_precision.h"
#include "eval/coco.h"
#include "tenonnx/base.h"
#include "tenonnx/contract.h"
#include "tenonnx/detection.h"

namespace tenonnx {

// `given`, else annotations.json in `folder`; empty where neither is there, and for "none".
std::filesystem::path find_labels(const std::filesystem::path& given,
                                  const std::filesystem::path& folder);

// Collects detections of labelled images; the figures are over these images and no others.
class LabelledRun {
 public:
  // Errors as read_coco_annotations and match_categories (the contract's classes against the
  // file's categories).
  static Result<LabelledRun> create(const std::filesystem::path& labels, const Contract& contract);
  // Whether the labels hold an image of this file name.
  bool knows(const std::string& file_name) const { return find(file_name) != nullptr; }
  // False where the labels do not hold an image of this file name: it is left out.
  bool add(const std::string& file_name, const std::vector<Detection>& reference,
           const std::vector<Detection>& candidate);
  std::size_t images() const { return seen_.images.size(); }

  struct Figures {
    CocoFigures reference, candidate;
  };
  // FailedPrecondition where no image was labelled.
  Result<Figures> figures() const;

 private:
  const CocoImage* find(const std::string& file_name) const;

  CocoDataset dataset_, seen_;
  std::vector<std::int64_t> categories_;
  std::vector<CocoResult> reference_, candidate_;
};

}  // namespace tenonnx
