// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The proof that a package computes what its source model computes: three levels (graph, device,
// task), over the inputs, in fresh sessions on the files that ship. `deploy` and `verify` share it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "flow/comparison.h"
#include "flow/evidence.h"
#include "flow/inputs.h"
#include "flow/labels.h"
#include "flow/run_budget.h"
#include "flow/segments.h"
#include "model/model.h"
#include "ort/executor.h"
#include "package/manifest.h"

namespace tenonnx {

struct ProofRequest {
  std::filesystem::path package;  // where the segments' files lie
  // Where the same segments lie without what changes roundings (DeployOptions::fuse_attention): the
  // graph level, which wants every bit, takes these. Empty: those of the package.
  std::filesystem::path plain;
  // False where those are not at hand: no graph level then.
  bool graph_level = true;
  const Contract* contract = nullptr;
  const std::vector<Segment>* segments = nullptr;
  // Boundary -> source tensor (Manifest::boundaries), proved where the source model is at hand.
  std::vector<std::pair<std::string, std::string>> boundaries;
  // The whole model, as it was given; or what it detected, where it is not at hand. One of the two.
  const Model* source = nullptr;
  const Evidence* evidence = nullptr;
  const InputSource* inputs = nullptr;
  std::filesystem::path labels;  // empty: none
  bool labels_given = false;     // by the user: to name none of the images is an error then
  RunBudget* budget = nullptr;   // of runs on devices; nullptr: they are not counted
  LoadOptions load;
  Progress progress;
};

struct Proof {
  Verdict verdict = Verdict::kInconclusive;
  std::vector<Check> checks;
  std::vector<StageStatus> stages;  // runtime_init and forward
  bool cut_is_right = true;         // else nothing behind the graph level was tried
  bool fusion_crosses = false;
  TaskSummary task;
  std::vector<std::string> classes;  // the contract's names by label
  std::vector<TensorFigures> figures;
  Json images = Json::array();  // ChainComparison::images
  Evidence evidence;            // what both sides detected
  std::optional<LabelledRun::Figures> precision;
  std::size_t labelled_images = 0;
  std::string diagnosis;  // where a failure begins, as far as it is known
  std::string first_bad_tensor;
  std::vector<SegmentPlacement> placement;
  std::vector<std::string> input_hashes;  // of the inputs that were run
  std::vector<std::pair<std::string, std::string>>
      versions;  // tool, runtime, device files; by name
  std::vector<std::string> notes;
  // Where the budget was used up: what is judged then are the inputs before. A gate that these fail
  // is a FAIL, whatever the others would have said; else the proof is INCONCLUSIVE.
  BudgetStop budget;
};

// Errors are for what prevents a judgement (an image that cannot be read, a model that does not run
// on the cpu). A segment that its executor does not load or run is a failed check, not an error.
Result<Proof> prove(const ProofRequest& request);

// cpu_reexport where every segment runs on the cpu, else heterogeneous.
TaskGates gates_for(const std::vector<Segment>& segments);

// The checks of the graph level among a package's.
bool is_graph_level(const Check& check);

// The check that is INCONCLUSIVE where the budget was used up.
inline constexpr const char* kBudgetCheck = "device runs within the budget";

// Name of the check that says that the order of the size could not be proved. Only the source model
// can tell: without it the check is to be carried over from the deploy.
std::string size_order_check_name(const Contract& contract);

}  // namespace tenonnx
