// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/labels.h"

#include <system_error>

#include "base/status.h"

namespace tenonnx {
namespace fs = std::filesystem;

fs::path find_labels(const fs::path& given, const fs::path& folder) {
  if (given == "none") return {};
  if (!given.empty()) return given;
  if (folder.empty()) return {};
  std::error_code error;
  const fs::path beside = folder / "annotations.json";
  return fs::is_regular_file(beside, error) ? beside : fs::path();
}

Result<LabelledRun> LabelledRun::create(const fs::path& labels, const Contract& contract) {
  LabelledRun run;
  TENONNX_ASSIGN_OR_RETURN(run.dataset_, read_coco_annotations(labels));
  auto categories = match_categories(run.dataset_, contract.classes);
  if (!categories.ok()) return categories.status().at(labels.string());
  run.categories_ = std::move(*categories);
  run.seen_.categories = run.dataset_.categories;
  return run;
}

const CocoImage* LabelledRun::find(const std::string& file_name) const {
  for (const CocoImage& one : dataset_.images)
    if (fs::path(one.file_name).filename() == file_name) return &one;
  return nullptr;
}

bool LabelledRun::add(const std::string& file_name, const std::vector<Detection>& reference,
                      const std::vector<Detection>& candidate) {
  const CocoImage* image = find(file_name);
  if (image == nullptr) return false;
  seen_.images.push_back(*image);
  for (const CocoAnnotation& annotation : dataset_.annotations)
    if (annotation.image_id == image->id) seen_.annotations.push_back(annotation);
  const auto append = [&](std::vector<CocoResult>& to, const std::vector<Detection>& from) {
    for (const CocoResult& result : to_coco_results(image->id, from, categories_))
      to.push_back(result);
  };
  append(reference_, reference);
  append(candidate_, candidate);
  return true;
}

Result<LabelledRun::Figures> LabelledRun::figures() const {
  if (seen_.images.empty())
    return FailedPrecondition("the labels name none of the images that were run");
  TENONNX_ASSIGN_OR_RETURN(const auto reference, CocoEvaluation::create(seen_, reference_));
  TENONNX_ASSIGN_OR_RETURN(const auto candidate, CocoEvaluation::create(seen_, candidate_));
  return Figures{reference.figures(), candidate.figures()};
}

}  // namespace tenonnx
