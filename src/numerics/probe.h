// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// One real node or block of a model on a device, fed with the reference's own tensors: its error
// alone, without what it would inherit. What `probe` does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "flow/compare.h"
#include "numerics/error_profile.h"
#include "numerics/piece.h"

namespace tenonnx {

struct ProbeOptions {
  // Of it: reference, ref, on, inputs, images, max_images, random_inputs, seed, storage,
  // memory_mib, preparation, load, progress.
  CompareOptions common;
  PieceSelection selection;
};

struct ProbedOutput {
  std::string tensor;
  ErrorProfile profile;
  // Of a Softmax: the largest |sum - 1| of the device, and of the reference stored.
  std::optional<double> softmax_sum, softmax_baseline;
};

struct ProbedPiece {
  Piece piece;
  std::string input_dtypes;           // "float32 /decoder/MatMul_output_0": what was fed
  std::vector<ProbedOutput> outputs;  // floating ones
  std::vector<std::string> skipped;   // others, and why
  // The largest ratio to the rounding of the output alone.
  double ratio() const;
  // An output has an element that is finite in the reference.
  bool compared() const;
};

struct ProbeResult {
  std::string model, sha256, ref, on, inputs;
  bool random_inputs = false;
  DType storage = DType::kFloat16;
  std::vector<ProbedPiece> pieces;  // by falling ratio
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, std::string>> versions;
  // Of any piece; where of none, nothing was found out, and there is no error to speak of.
  bool compared() const;
};

// Errors are for wrong input and for what does not run on one of the two executors.
Result<ProbeResult> probe(const ProbeOptions& options);

// docs/reference/json.md, "probe".
Json to_json(const ProbeResult& result);
// For people, at most 100 columns.
std::string describe(const ProbeResult& result);

}  // namespace tenonnx
