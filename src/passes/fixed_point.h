// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Passes over and over until nothing changes, each proved the moment it has run. A pass whose proof
// fails is undone and left out from then on; the others go on from the last good model.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "model/model.h"
#include "passes/name_record.h"
#include "passes/proof.h"
#include "passes/runner.h"

namespace tenonnx {

struct FixedPointRequest {
  std::vector<const PassInfo*> passes;  // in run order
  PassOptions options;                  // as run_passes
  // A pass whose opset range the model is outside of is left out; else that is an error.
  bool leave_out_other_opsets = true;
  bool repeat = true;  // to the fixed point; else one round
  // What proves a pass that changed something; empty: nothing is proved.
  std::function<Result<PassProof>(const PassInfo& pass, const Model& before, const Model& after,
                                  const PassOutcome& outcome)>
      prove;
  // The task gate, for approximate passes; empty: there is none. A FAIL undoes the pass.
  std::function<Result<std::vector<Check>>(const PassInfo& pass, const Model& before,
                                           const Model& after)>
      task_gate;
  Progress progress;
};

// What one pass did over all rounds.
struct PassRun {
  const PassInfo* pass = nullptr;
  int applied = 0;                           // over all rounds, of what was kept
  int rounds = 0;                            // in which it ran
  std::vector<Site> sites;                   // of what was kept
  std::vector<Refusal> skipped;              // of its last run
  std::string total;                         // of what was kept, PassOutcome::total
  std::map<std::string, double> recomputed;  // of what was kept, PassOutcome::recomputed
  double seconds = 0;                        // of the pass, without its proof
  int nodes_before = 0, nodes_after = 0;     // at its first change, after its last one
  int nodes_changed = 0;                     // by it alone: below zero where there are fewer
  std::vector<PassProof> proofs;             // one a round in which it changed something
  std::vector<Check> gate;                   // the task gate's checks, of the last time
  Verdict verdict = Verdict::kInconclusive;  // of the proofs together
  bool undone = false;                       // its proof, or the check of the graph, failed
  std::string problem;                       // why it was undone or left out; else empty
};

struct FixedPointResult {
  std::vector<PassRun> passes;  // in run order
  int rounds = 0;
  NameRecord names;
  double seconds = 0;  // of the passes and the checks of the graph, without the proofs
  bool any_undone() const;
};

// Errors: as run_passes; Internal where the rounds do not end. The model is then what the
// passes had made of it, of no use: a copy to go back to costs a tenth of the passes' time.
Result<FixedPointResult> run_to_fixed_point(Model& model, const FixedPointRequest& request);

// Nodes of the main graph and of all bodies.
int count_nodes(const Model& model);

}  // namespace tenonnx
