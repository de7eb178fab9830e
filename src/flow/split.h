// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Cutting a model at named tensors into two that compute the same: what `split` does, and what
// `deploy` does before it proves the cut.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "cut/describe.h"
#include "flow/prepare.h"
#include "model/model.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct BoundaryTensor {
  std::string name;         // "feature_0": what crosses, in both parts
  std::string source;       // its name in the model that was cut
  TensorInfo info;          // named `name`; -1 marks a dynamic dimension
  std::uint64_t bytes = 0;  // 0 where a dimension is dynamic
};

struct CutModel {
  Model encoder;
  Model decoder;
  std::vector<BoundaryTensor> boundaries;  // in the order in which the cut names them
};

// Cuts at tensors, each by its name or by a suffix that only one tensor has; they are renamed to
// "<prefix>_0" and so on. Errors as resolve_tensor and split (model/extract.h); InvalidArgument for
// no tensor, for one that is named twice, for a second part of nothing but Identity, and for a
// prefix with other characters than letters, digits, '_', '-', '.' and '/'.
Result<CutModel> cut_model(const Model& model, const std::vector<std::string>& at,
                           const std::string& prefix = "feature");

struct SplitRequest {
  std::filesystem::path model;
  std::vector<std::string> at;  // tensors, or "auto" alone (cut/auto_cut.h)
  std::filesystem::path out;    // a directory; made whole or not at all
  std::string name_prefix = "feature";
  Preparation preparation;
  bool force = false;          // replace what is there
  bool keep_metadata = false;  // SaveOptions::keep_metadata
};

struct SplitReport {
  std::string source_model, source_sha256;
  struct Part {
    std::string name, file, sha256;
    std::uint64_t bytes = 0;
    std::size_t nodes = 0;
    std::vector<TensorInfo> inputs, outputs;
  };
  std::vector<Part> parts;
  std::vector<BoundaryTensor> boundaries;
  CutDescription cut;
  std::string kind, reason;  // of the automatic cut (FoundCut); empty for one that was named
  std::vector<std::vector<std::string>> alternatives;  // other cuts that were found, by tensors
};

// Writes encoder.onnx, decoder.onnx and split.json (to_json of the report).
Result<SplitReport> split_file(const SplitRequest& request);
// [{"name", "dtype", "shape"}, ...]
Json to_json(const std::vector<TensorInfo>& tensors);
Json to_json(const std::vector<BoundaryTensor>& tensors);
Json to_json(const SplitReport& report);
std::string describe(const SplitReport& report);

// "6.15 MiB", "134 KiB", "800 bytes"
std::string spell_bytes(std::uint64_t bytes);

}  // namespace tenonnx
