// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The files of a package's evidence/ folder.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "metrics/limit.h"
#include "tenonnx/base.h"
#include "tenonnx/detection.h"

namespace tenonnx {

// What the whole model and the package detect in one input.
struct DetectionEvidence {
  std::string input;
  int width = 0, height = 0;
  std::string sha256;  // of the input's tensors
  std::vector<Detection> reference, candidate;
};
using Evidence = std::vector<DetectionEvidence>;

// evidence/detections.json: a line an input; a detection is [label, score, x0, y0, x1, y1], floats
// with the fewest digits that give the same float32 back.
Status write_detections(const std::filesystem::path& path, const Evidence& evidence);
Result<Evidence> read_detections(const std::filesystem::path& path);

// The three files into `directory`, which is made.
Status write_evidence(const std::filesystem::path& directory, Verdict verdict,
                      std::span<const Check> checks, const Json& images, const Evidence& evidence);

}  // namespace tenonnx
