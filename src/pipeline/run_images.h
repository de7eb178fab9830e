// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What `tenonnx run` does: a package, images in, detections and pictures out.
#pragma once

#include <filesystem>
#include <functional>
#include <istream>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "tenonnx/pipeline.h"

namespace tenonnx {

// One image, or one frame of a stream.
struct ImageDetections {
  std::string name;  // the file's path as given; "frame 1", ...
  std::int64_t image_id = 0;
  int width = 0;
  int height = 0;
  std::vector<Detection> detections;  // the highest score first
  std::string drawn;                  // path of the picture; empty: none
};

struct RunOptions {
  std::filesystem::path package;
  // Files, folders (their .jpg, .jpeg, .png, .ppm and .pgm files by name), or "-" alone: raw
  // frames.
  std::vector<std::string> images;
  std::filesystem::path out;  // created; files of the same names are replaced
  float score_threshold = 0.25F;
  bool draw = true;
  bool allow_failed_package = false;
  bool check_versions = true;
  SchedulingParams scheduling;
  Progress progress;
  // Called after each image, in order.
  std::function<void(const ImageDetections&)> on_image;
  // For "-": packed frames one behind the other until the stream ends.
  std::istream* stream = nullptr;
  int frame_width = 0;
  int frame_height = 0;
  ImageFormat frame_format = ImageFormat::kRgb8;
};

struct RunFailure {
  std::string name;
  std::string message;
};

struct RunResult {
  std::string package;
  std::string verdict;  // of the package
  float score_threshold = 0;
  std::vector<std::string> classes;
  std::vector<ImageDetections> images;
  std::vector<RunFailure> failures;  // images that could not be read; the others were done
  std::filesystem::path detections_file, coco_file, drawn_directory;
  std::string image_ids;  // where they come from: "annotations.json", "1 to N"
};

// Writes into `out`: detections.json (to_json of the result), coco_results.json (COCO results), and
// drawn/<name>.png. Image ids and category ids are those of annotations.json in an image's folder
// where there is one (an image that it does not name gets a number above all that it holds), else
// 1..N and the label. An image that cannot be read is a failure in the result, and the rest is
// done: the command then ends with exit code 2. Errors of the package, of the output directory, or
// of the arguments end the run before it begins.
Result<RunResult> run_images(const RunOptions& options);

// docs/reference/json.md, "run".
Json to_json(const RunResult& result);

}  // namespace tenonnx
