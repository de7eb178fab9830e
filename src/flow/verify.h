// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A package is read from disk, in fresh sessions, and what its manifest says is proved again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "flow/prove.h"
#include "package/manifest.h"

namespace tenonnx {

struct VerifyOptions {
  std::filesystem::path package;
  // With images the gates are run again: against the source model where it is given (all three
  // levels), else against what it detected at the deploy (the task level only).
  std::filesystem::path images;
  std::filesystem::path labels;  // as DeployOptions::labels
  std::filesystem::path model;   // must have the manifest's SHA-256
  // An .npz with the model's inputs, recorded elsewhere: checked against the contract (dtype,
  // shape, layout), then run once.
  std::filesystem::path tensors;
  bool allow_version_mismatch = false;
  std::size_t max_images = 0;  // 0: all
  LoadOptions load;
  Progress progress;
};

struct VersionDifference {
  std::string name, recorded, present;  // "" where one side lacks it
};

struct VerifyResult {
  Manifest manifest;
  std::filesystem::path package;
  std::vector<VersionDifference> version_differences;
  bool ran_gates = false;
  Proof proof;  // with images; else versions and placement only
  std::vector<Check> checks;
  Verdict verdict = Verdict::kInconclusive;
  std::vector<std::string> notes;
  std::string inputs;  // InputSource::description, with images
};

// Errors: everything that read_package refuses; FailedPrecondition for versions that differ (unless
// allowed: then they are notes) and for a model of another SHA-256; InvalidArgument for inputs that
// do not fit. Without images the verdict is the manifest's: the files are what was proved, and they
// load and run.
Result<VerifyResult> verify(const VerifyOptions& options);

// docs/reference/json.md, "verify".
Json to_json(const VerifyResult& result);
std::string describe(const VerifyResult& result);

}  // namespace tenonnx
