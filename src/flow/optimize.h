// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What `optimize` and `rewrite` do: passes over a model, each proved when it has run, the whole
// graph checked at the end, and the result written with a record of what became of the names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "flow/tensor_inputs.h"
#include "flow/whole_check.h"
#include "passes/fixed_point.h"

namespace tenonnx {

enum class ProofLevel : std::uint8_t {
  kNone,     // nothing is checked
  kWhole,    // the whole graph once, at the end
  kRegions,  // each pass's regions when it has run, and the whole graph at the end
};
Result<ProofLevel> proof_level_from_string(std::string_view text);  // "none", "whole", "regions"
std::string_view to_string(ProofLevel level);

struct OptimizeOptions {
  std::filesystem::path model, out;
  // rewrite: the passes to run, once each, in this order. optimize: empty; fold_constants and every
  // pass of stage optimize, to the fixed point, or those of `only`, without those of `skip`.
  std::vector<std::string> passes;
  std::vector<std::string> only, skip;
  PassOptions options;                              // "<pass>.<option>" -> value
  std::map<std::string, std::string> input_shapes;  // "images" -> "1x3x640x640"
  // What the proofs run on: images after the contract's preprocessing, or tensors (.npz or a
  // folder); random values where neither is given.
  std::filesystem::path images, inputs;
  std::size_t max_images = 8;
  ProofLevel proof = ProofLevel::kRegions;
  std::uint64_t seed = 1;
  bool force = false;
  bool keep_metadata = false;
  LoadOptions load;
  Progress progress;
};

struct GraphSize {
  int nodes = 0;
  std::uint64_t bytes = 0;  // of the model's files
  std::string sha256;       // of the model file
};

struct OptimizeResult {
  std::string model, out;  // file names
  bool written = false;    // not where the whole graph failed its check
  GraphSize before, after;
  FixedPointResult passes;
  ProofLevel proof = ProofLevel::kRegions;
  std::string inputs;  // "8 images of 'held-out'"
  bool random_inputs = false;
  WholeCheck whole;
  // INCONCLUSIVE at best where a pass that was named has declined; no meaning for kNone.
  Verdict verdict = Verdict::kInconclusive;
  // rewrite: passes that were named and declined everywhere, each with its first reason.
  std::vector<std::string> declined;
  // rewrite: passes of stage rewrite that were named, changed some sites and declined others, each
  // with the first reason. The verdict is of what was changed.
  std::vector<std::string> left;
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, std::string>> versions;
  double seconds = 0;  // of everything but writing
};

// Writes `out` and "<out without .onnx>.passes.json" beside it, both or none, and the model's
// contract as "<out without .onnx>.contract.json" where none stands there, its cut by the new
// names; minimal cases of failed proofs to "<out>.failed/", which a later run of the same output
// without a failure removes, where it holds nothing else. A pass that fails its proof is undone,
// the others go on. Errors: NotFound (no such pass, model, folder), InvalidArgument (an option of
// no pass; only or skip name a pass that optimize does not run; out is the model),
// FailedPrecondition (out exists, without force), Io.
Result<OptimizeResult> optimize_file(const OptimizeOptions& options);

// What stands in "<out>.passes.json" and what --json prints.
Json to_json(const OptimizeResult& result);
std::string describe(const OptimizeResult& result);

// --list and --explain.
std::string list_passes();
Json passes_json();
Result<std::string> explain_pass(std::string_view name);

}  // namespace tenonnx
