// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Does a candidate compute what a reference computes, tensor by tensor? What `compare` does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "flow/compare_plan.h"
#include "flow/compare_precision.h"
#include "flow/compare_tensor.h"
#include "flow/prepare.h"
#include "ort/executor.h"

namespace tenonnx {

struct CompareOptions {
  std::filesystem::path reference;  // A.onnx
  std::filesystem::path candidate;  // B.onnx; empty: the same model on another executor
  std::string ref = "cpu", on = "cpu";
  std::filesystem::path inputs;  // TensorInputs::from_files
  std::filesystem::path images;  // a folder or one image; neither: random inputs, INCONCLUSIVE
  std::size_t max_images = 0;
  std::size_t random_inputs = 2;
  std::uint64_t seed = 1;
  std::string tensors = "all";  // "all", "boundary" or a glob
  std::string cut;  // of "boundary": as DeployOptions::cut; empty: the contract's, else none
  std::filesystem::path names;  // a record of names; empty: <candidate stem>.passes.json if there
  std::string storage;          // "float16", "bfloat16", "float32"; empty: what `on` stores
  double factor = 8;            // of the noise floor
  // "allclose", "psnr": of the model's outputs; "map": of the average precision over the images.
  std::vector<std::string> gates;
  std::filesystem::path labels;    // of "map": COCO; empty: annotations.json beside the images
  std::int64_t memory_mib = 1536;  // of tensors at a time
  std::filesystem::path cache;     // empty: the user's cache directory
  bool resume = false;             // go on where an equal run was ended
  Preparation preparation;
  LoadOptions load;  // of the candidate
  Progress progress;
};

struct ComparedTensor {
  PlannedTensor plan;
  std::optional<TensorComparison> figures;
};

struct ComparedSelection {
  Selection selection;
  std::optional<SelectionAgreement> agreement;
  // The reference was computed with the candidate's indices: rows behind are the same detections.
  bool forced = false;
  std::string missing;  // else what to do about it
  Check check;
};

struct CompareResult {
  Verdict verdict = Verdict::kInconclusive;
  std::string reference, candidate;  // file names
  std::string reference_sha256, candidate_sha256;
  std::string ref, on;
  std::string taken;   // how tensors were taken: "as added outputs", "at cuts"
  std::string names;   // where the record of names was found; "" for none
  std::string inputs;  // InputSource::description
  bool random_inputs = false;
  DType storage = DType::kFloat16;
  std::string forms_of;  // the device whose forms of operators are part of the floor; "": none
  double factor = 8;
  std::vector<ComparedTensor> tensors;  // topological order
  std::vector<ComparedSelection> selections;
  std::vector<Check> checks;  // what the verdict is made of
  std::vector<std::string> notes;
  std::optional<ComparedPrecision> precision;  // of the gate "map"
  std::vector<std::string> explanations;       // contract errors that explain the difference
  std::vector<std::pair<std::string, std::string>> versions;
  std::size_t windows = 0, recalled = 0;
  std::size_t reused = 0;  // tensors of the recalled windows

  std::size_t count(TensorState state) const;
  // The first tensor in topological order beyond its limit; nullptr for none.
  const ComparedTensor* first_beyond() const;
  // Of those with figures: whose error is the floor itself (is_floor_itself), and that differ at
  // all.
  std::size_t at_floor() const;
  std::size_t differing() const;
  // Those with figures, by falling ratio to the noise floor; of equal ratios the larger relative L2
  // comes first.
  std::vector<const ComparedTensor*> worst() const;
};

// Errors are for wrong input and for what does not run on the reference; a candidate that does not
// load or run is an error too, as there is nothing to compare.
Result<CompareResult> compare(const CompareOptions& options);

// "compared 214 of 260 tensors, 31 fused away, 15 unmapped"
std::string coverage(const CompareResult& result);
// docs/reference/json.md, "compare".
Json to_json(const CompareResult& result);
// For people, at most 100 columns.
std::string describe(const CompareResult& result);

}  // namespace tenonnx
