// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/fixed_point.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "model/graph.h"
#include "passes/graph_facts.h"
#include "passes/step.h"

namespace tenonnx {
namespace {

// Each round of the largest export changes less than the one before; it needs 3 to 5.
constexpr int kMaxRounds = 50;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

int count_nodes(const Model& model) {
  int nodes = 0;
  for_each_graph(model.proto().graph(),
                 [&](const onnx::GraphProto& graph) { nodes += graph.node_size(); });
  return nodes;
}

bool FixedPointResult::any_undone() const {
  return std::any_of(passes.begin(), passes.end(), [](const PassRun& run) { return run.undone; });
}

Result<FixedPointResult> run_to_fixed_point(Model& model, const FixedPointRequest& request) {
  FixedPointResult result;
  TENONNX_ASSIGN_OR_RETURN(auto options, options_by_pass(request.passes, request.options));
  for (const PassInfo* pass : request.passes) {
    PassRun run;
    run.pass = pass;
    result.passes.push_back(std::move(run));
  }
  Model& good = model;
  rename_shadowing(good.mutable_proto());
  std::set<std::string> names = computed_names(good.proto().graph());
  // Passes are functions of the graph: one that found nothing in it finds nothing in it again, if
  // it knew all types. The last round, which changes nothing, begins with what is exact.
  std::int64_t version = 0;
  std::map<const PassRun*, std::int64_t> idle_at;
  const auto is_idle = [&](const PassRun& run) {
    const auto it = idle_at.find(&run);
    return run.undone || (it != idle_at.end() && it->second == version);
  };
  for (bool changed = true; changed;) {
    changed = false;
    if (std::all_of(result.passes.begin(), result.passes.end(), is_idle)) break;
    if (++result.rounds > kMaxRounds)
      return Internal(
          "the passes still change the graph after {} rounds: two of them undo each "
          "other's work; leave one out with --skip",
          kMaxRounds);
    drop_inexact_types(good);
    for (PassRun& run : result.passes) {
      if (is_idle(run)) continue;
      const PassInfo& pass = *run.pass;
      if (const Status status = check_opset(pass, good); !status.ok()) {
        if (!request.leave_out_other_opsets) return status;
        run.problem = status.message();
        continue;
      }
      if (request.progress)
        request.progress(fmt::format("round {}: {}", result.rounds, pass.name), 0, 0);
      // Without proofs nothing is ever undone, and a copy of the weights is time.
      std::optional<Model> before;
      if (request.prove) before = good.clone();
      const int nodes = count_nodes(good);
      const auto start = Clock::now();
      auto outcome = run_step(pass, good, options[pass.name]);
      ++run.rounds;
      run.seconds += seconds_since(start);
      result.seconds += seconds_since(start);
      if (!outcome.ok()) {
        // Without proofs there is nothing to go back to; a wrong option is the caller's.
        if (!before || outcome.status().code() != StatusCode::kInternal) return outcome.status();
        run.undone = true;
        run.verdict = Verdict::kFail;
        run.problem = outcome.status().message();
        good = std::move(*before);
        continue;
      }
      run.skipped = std::move(outcome->skipped);
      if (outcome->applied == 0) {
        if (has_exact_types(good)) idle_at[&run] = version;
        // Whatever a pass does without saying so is not kept either.
        if (before) good = std::move(*before);
        continue;
      }
      if (request.prove) {
        if (request.progress)
          request.progress(fmt::format("round {}: proof of {}", result.rounds, pass.name), 0, 0);
        TENONNX_ASSIGN_OR_RETURN(PassProof proof, request.prove(pass, *before, good, *outcome));
        Verdict verdict = proof.verdict;
        if (pass.exactness == PassClass::kApproximate && request.task_gate) {
          TENONNX_ASSIGN_OR_RETURN(run.gate, request.task_gate(pass, *before, good));
          verdict = overall_verdict(run.gate);
        }
        run.verdict = run.proofs.empty() ? verdict : combine(run.verdict, verdict);
        const bool proved = proof.verdict != Verdict::kFail;
        run.proofs.push_back(std::move(proof));
        if (verdict == Verdict::kFail) {
          run.undone = true;
          run.problem = proved ? "the task gate failed" : "its proof failed";
          good = std::move(*before);
          continue;
        }
      }
      changed = true;
      ++version;
      if (run.applied == 0) run.nodes_before = nodes;
      run.nodes_after = count_nodes(good);
      run.nodes_changed += run.nodes_after - nodes;
      run.applied += outcome->applied;
      if (!outcome->total.empty())
        run.total += (run.total.empty() ? "" : ", then ") + outcome->total;
      run.recomputed.merge(outcome->recomputed);
      run.sites.insert(run.sites.end(), std::make_move_iterator(outcome->sites.begin()),
                       std::make_move_iterator(outcome->sites.end()));
      std::set<std::string> now = computed_names(good.proto().graph());
      result.names =
          join(result.names, record_of(names, now, outcome->renamed, pass.name, outcome->moved));
      names = std::move(now);
    }
    changed = changed && request.repeat;
  }
  return result;
}

}  // namespace tenonnx
