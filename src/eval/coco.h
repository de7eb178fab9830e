// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// COCO detection files: annotations ("instances") and results. Source: cocodataset.org, "Data
// format" and "Results format". Boxes are [x, y, width, height] in pixels from the left top corner.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "metrics/detections.h"
#include "tenonnx/base.h"

namespace tenonnx {

using CocoBox = std::array<double, 4>;  // x, y, width, height

struct CocoImage {
  std::int64_t id = 0;
  std::string file_name;
  std::int64_t width = 0;
  std::int64_t height = 0;
};

struct CocoCategory {
  std::int64_t id = 0;
  std::string name;
};

struct CocoAnnotation {
  std::int64_t id = 0;
  std::int64_t image_id = 0;
  std::int64_t category_id = 0;
  CocoBox bbox = {};
  double area = 0;       // of the object (its mask), which decides small, medium, large
  bool iscrowd = false;  // a group: any number of detections may fall on it, none counts
  // Read and written, but the twelve figures do not look at it: pycocotools overwrites it with
  // iscrowd.
  bool ignore = false;
};

struct CocoDataset {
  std::vector<CocoImage> images;
  std::vector<CocoAnnotation> annotations;
  std::vector<CocoCategory> categories;
};

struct CocoResult {
  std::int64_t image_id = 0;
  std::int64_t category_id = 0;
  CocoBox bbox = {};
  double score = 0;
};

// DataLoss with the path of the field where something is missing or of the wrong type, an id occurs
// twice, an annotation names an image or category that the file does not hold, or a number is not
// finite or negative where it cannot be. Fields that detection does not use (segmentation, info,
// licenses) are not kept. `where` (a file name) begins the messages.
Result<CocoDataset> parse_coco_annotations(const Json& json, std::string_view where);
Result<CocoDataset> read_coco_annotations(const std::filesystem::path& path);
Json to_json(const CocoDataset& dataset);

// An array of {"image_id","category_id","bbox","score"}; errors as above.
Result<std::vector<CocoResult>> parse_coco_results(const Json& json, std::string_view where);
Result<std::vector<CocoResult>> read_coco_results(const std::filesystem::path& path);
Json to_json(std::span<const CocoResult> results);

// The category of each label of a model, by name: the model's class i is the category called
// class_names[i], where case and the difference between '_', '-' and ' ' do not count.
// InvalidArgument that lists both sides where a category has no class. A class that the file lacks
// gets -1: its detections belong to no category (they are not counted).
Result<std::vector<std::int64_t>> match_categories(const CocoDataset& dataset,
                                                   std::span<const std::string> class_names);

// Detections of one image as COCO results. category_ids as match_categories returns it; detections
// whose label it does not hold, or holds as -1, are left out, and so are those with Inf or NaN:
// they find nothing (match_detections counts them). Corners in the wrong order give width or height
// 0.
std::vector<CocoResult> to_coco_results(std::int64_t image_id,
                                        std::span<const Detection> detections,
                                        std::span<const std::int64_t> category_ids);

}  // namespace tenonnx
