// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The main job: one model, one target, one package with its proof.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "flow/cut_attempts.h"
#include "flow/prepare.h"
#include "flow/prepare_for_device.h"
#include "flow/prove.h"
#include "flow/run_budget.h"
#include "flow/split.h"
#include "ort/executor.h"
#include "package/manifest.h"
#include "passes/runner.h"

namespace tenonnx {

struct DeployOptions {
  std::filesystem::path model;
  std::string target = "cpu";    // devices/<target>.json
  std::filesystem::path out;     // the package
  bool force = false;            // replace the package that stands there
  std::filesystem::path images;  // a folder or one image; empty: random inputs, INCONCLUSIVE
  std::filesystem::path
      labels;  // empty: annotations.json in the images' folder, where there is one; "none": none
  std::size_t max_images = 0;  // 0: all
  // "T0,T1" (names or unique suffixes), "none", "auto" (cut/auto_cut.h), or a file: split.json, a
  // contract, a JSON array, or a name a line. Empty: what the contract names; else the whole graph,
  // and where that fails a gate, the automatic cut and its alternatives, until one does not fail.
  std::string cut;
  // A list of nodes (cut/kept_nodes.h) that the cpu computes, the target's device all others, in
  // segments that alternate (flow/kept_segments.h). Empty: none. Not together with `cut`.
  std::filesystem::path keep_on_cpu;
  Preparation preparation;
  // Deformable attention of segments on the cpu becomes tenonnx.MSDeformAttn; the library that has
  // it becomes a part of the package.
  bool fuse_attention = false;
  bool keep_metadata = false;  // of the exporter, source paths included
  // The tenonnx command: where segments ship compiled it reloads and runs them in a fresh process.
  // Empty: that is not done.
  std::filesystem::path program;
  // Runs of a segment on a device, over all attempts, that no cache answers; 0: no limit. The runs
  // that show the placement and that of the fresh process count too; compiling does not. Where it
  // is used up the package is INCONCLUSIVE, unless the inputs before have failed a gate.
  std::size_t budget = 0;
  std::size_t random_inputs = 2;
  std::uint64_t seed = 1;
  LoadOptions load;
  Progress progress;
};

// The passes of DeployOptions::fuse_attention, in their order, as manifest.settings["passes"] names
// them; where kFusePass did something there are fused operators. Rows first: a box head over all
// tokens costs as much as the attention.
inline constexpr const char* kFusePass = "replace_ms_deform_attn";
inline constexpr std::array<std::string_view, 3> kFusePasses = {"hoist_gather", kFusePass,
                                                                "fuse_sampling_locations"};

// How the notes begin that say what a guessed contract takes for granted.
inline constexpr std::string_view kGuessed = "contract guessed: ";

struct DeployResult {
  Manifest manifest;  // as it was written
  std::filesystem::path package;
  Proof proof;
  std::string contract_origin;  // "shapes.contract.json", "guessed from the graph"
  bool contract_guessed = false;
  std::vector<std::string> assumed;  // what a guess takes for granted, also among the notes
  // "cut by --cut", "cut by the contract", "whole graph (...)", "automatic cut (...)", "nodes kept
  // on the cpu (--keep-on-cpu)"
  std::string cut_origin;
  std::string cut_description;  // "33,600 elements, 131 KiB in float32; behind it ..."; "" uncut
  std::vector<TriedCut> tried;  // in order; the last one that was possible is the package's
  std::vector<std::string> notes;
  std::vector<BoundaryTensor> boundaries;
  std::vector<std::string> kept;  // nodes, by DeployOptions::keep_on_cpu
  std::vector<PassReport> passes;
  std::vector<ChosenPass> chosen;   // by the rules of the target's file; not among `passes`
  std::vector<NotTaken> not_taken;  // nodes that these rules do not take
  RunBudget runs;                   // on devices
  // The least budget that decides what was left open, with what the cache holds now; 0: nothing
  // was.
  std::size_t budget_needed = 0;
  std::string inputs;  // InputSource::description
};

// Writes the package whatever the verdict (which is in the manifest, and which `run` obeys). Errors
// are for wrong input: nothing is written then.
Result<DeployResult> deploy(const DeployOptions& options);

// docs/reference/json.md, "deploy".
Json to_json(const DeployResult& result);
// For people: where each segment runs, what crosses, the checks as a table, average precision, what
// the verdict does not cover.
std::string describe(const DeployResult& result);

// File name -> SHA-256 of a model and its external data: manifest.settings["source_files"].
Json source_files(const Model& source);

// The tensors that a cut names (DeployOptions::cut); empty for "none", "auto" alone for "auto".
Result<std::vector<std::string>> parse_cut(const std::string& cut);

}  // namespace tenonnx
