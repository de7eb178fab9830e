// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The average precision of both sides of a comparison on the same labelled images: the gate 'map'.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/log.h"
#include "flow/inputs.h"
#include "flow/labels.h"
#include "metrics/limit.h"
#include "model/model.h"
#include "ort/executor.h"
#include "tenonnx/contract.h"

namespace tenonnx {

// One side, as the comparison runs it: the whole model, at the options' optimisation level.
struct PrecisionSide {
  const Executor* executor = nullptr;
  const Model* model = nullptr;
  std::map<std::string, std::string> renamed;  // output of the contract -> its name in this model
  std::string title;                           // "reference"
};

struct PrecisionRequest {
  PrecisionSide reference, candidate;
  const Contract* contract = nullptr;
  const InputSource* images = nullptr;
  std::filesystem::path labels;  // COCO annotations
  LoadOptions load;
  Progress progress;
};

struct ComparedPrecision {
  LabelledRun::Figures figures;
  std::size_t images = 0;  // labelled ones, over which the figures are
  std::string labels;      // file name
  Check check;             // map_gate
  std::vector<std::string> notes;
};

// InvalidArgument where the contract names no classes, where the labels name none of the images,
// and as LabelledRun. A candidate whose outputs do not decode (NaN) has detected nothing, which a
// note says. INCONCLUSIVE where no object is annotated, or fewer images are labelled than a task
// gate asks for (TaskGates::min_images). A failure stays one.
Result<ComparedPrecision> compare_precision(const PrecisionRequest& request);

}  // namespace tenonnx
