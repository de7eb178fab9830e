// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/locate.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "adapters/qnn_options.h"
#include "base/files.h"
#include "base/status.h"
#include "base/wording.h"
#include "flow/compare_explain.h"
#include "flow/compare_journal.h"
#include "flow/deploy.h"
#include "model/extract.h"
#include "numerics/cross_split.h"
#include "numerics/locate_findings.h"
#include "numerics/minimal_case.h"
#include "numerics/node_sets.h"
#include "numerics/suspects.h"

namespace tenonnx {
namespace {

class Locator {
 public:
  Locator(const LocateOptions& options, CompareSetup& setup)
      : options_(options), setup_(setup), theirs_(setup.candidate().proto().graph()) {}

  Result<LocateResult> run() {
    describe_setup();
    TENONNX_RETURN_IF_ERROR(check_sides());
    if (options_.dry_run) return dry_run();
    TENONNX_RETURN_IF_ERROR(open_journals());
    TENONNX_RETURN_IF_ERROR(measure());
    if (is_copy()) return std::move(result_);
    TENONNX_RETURN_IF_ERROR(judge_whole());
    if (!ref_recorded_ && !on_recorded_) TENONNX_RETURN_IF_ERROR(try_sides());
    explain_contract();
    say_what_was_found(result_, {stands_out_, ref_recorded_ || on_recorded_, &theirs_});
    TENONNX_RETURN_IF_ERROR(write_files());
    return std::move(result_);
  }

 private:
  void describe_setup() {
    const CompareOptions& common = options_.common;
    result_.reference = common.reference.filename().string();
    result_.reference_sha256 = setup_.source.sha256();
    result_.candidate =
        setup_.two_models ? common.candidate.filename().string() : result_.reference;
    result_.candidate_sha256 = setup_.candidate().sha256();
    result_.ref = setup_.ref->address();
    result_.on = setup_.on->address();
    result_.inputs = setup_.inputs.description();
    result_.random_inputs = setup_.inputs.is_random();
    result_.storage = setup_.settings.storage;
    result_.notes = setup_.notes;
    result_.budget = options_.budget;
    result_.looking =
        "tensors were taken as added outputs, which change what a compiler fuses; trials divide "
        "the "
        "graph, whose parts are compiled apart";
    result_.versions = versions_of(setup_);
  }

  // The same names, and what is recorded.
  Status check_sides() {
    TENONNX_ASSIGN_OR_RETURN(const auto ref, setup_.ref->recorded_tensors(setup_.source));
    TENONNX_ASSIGN_OR_RETURN(const auto on, setup_.on->recorded_tensors(
                                                setup_.two_models ? setup_.other : setup_.source));
    ref_recorded_ = ref.has_value();
    on_recorded_ = on.has_value();
    if (ref_recorded_ && on_recorded_)
      return InvalidArgument(
          "both sides are recordings: nothing can be run to find where they part; compare tells "
          "the "
          "first tensor that differs");
    if (setup_.two_models)
      TENONNX_RETURN_IF_ERROR(check_same_inputs(setup_.reference, setup_.other));
    if (options_.budget == 0)
      return InvalidArgument("--budget is at least 1 trial on the device, got 0");
    if (options_.suspects == 0)
      return InvalidArgument("--suspects is at least 1 node to look at, got 0");
    // Before anything long: what would be refused at the end.
    if (!options_.minimal.empty())
      TENONNX_RETURN_IF_ERROR(check_minimal_directory(options_.minimal));
    if (!options_.node_list.empty()) {
      const std::filesystem::path parent = options_.node_list.parent_path();
      std::error_code error;
      if (!parent.empty() && !std::filesystem::is_directory(parent, error))
        return NotFound("--keep '{}': the directory '{}' does not exist",
                        options_.node_list.string(), parent.string());
      if (std::filesystem::is_directory(options_.node_list, error))
        return InvalidArgument("--keep '{}' is a directory; give a file",
                               options_.node_list.string());
    }
    if (!options_.cut.empty()) {
      TENONNX_ASSIGN_OR_RETURN(named_, parse_cut(options_.cut));
      for (std::string& name : named_) {
        TENONNX_ASSIGN_OR_RETURN(name, resolve_tensor(setup_.candidate(), name));
      }
    }
    if (ref_recorded_ || on_recorded_)
      result_.notes.push_back(
          "one side is a recording: parts of the graph cannot be exchanged between the two, so "
          "there "
          "are no trials, only errors tensor by tensor");
    return {};
  }

  Result<LocateResult> dry_run() {
    result_.notes.push_back(fmt::format(
        "dry run: nothing was computed. It would measure the accumulated and the own error of "
        "every "
        "tensor over {} (each side once, and its noise floor), try {} cuts on both sides, and then "
        "sets of nodes; at most {} trials on '{}'",
        result_.inputs, options_.max_cuts, options_.budget, result_.on));
    result_.dry_run = true;
    result_.headline = "dry run";
    return std::move(result_);
  }

  Status open_journals() {
    std::filesystem::path cache =
        options_.common.cache.empty() ? CompareJournal::default_directory() : options_.common.cache;
    if (options_.common.cache == "none") cache.clear();
    // Once: it reads every input.
    TENONNX_ASSIGN_OR_RETURN(const std::string key,
                             comparison_key(options_.common, setup_, "locate"));
    for (const char* step : {"accumulated", "own", "trials"}) {
      TENONNX_ASSIGN_OR_RETURN(CompareJournal journal,
                               CompareJournal::open(cache, key + step, options_.common.resume));
      journals_.push_back(std::move(journal));
    }
    return {};
  }

  Status measure() {
    ErrorsRequest request;
    request.setup = &setup_;
    request.load = options_.common.load;
    request.memory = options_.common.memory_mib << 20;
    request.progress = options_.common.progress;
    request.accumulated = &journals_[0];
    request.own = &journals_[1];
    TENONNX_ASSIGN_OR_RETURN(table_, measure_errors(request));
    result_.tensors = table_.compared;
    result_.identical = table_.identical;
    result_.with_own = table_.with_own();
    for (const TensorErrors& one : table_.tensors) {
      result_.own_failing += one.own_fails() ? 1 : 0;
      result_.accumulated_failing += one.accumulated_fails() ? 1 : 0;
      result_.unmapped += one.plan.state == TensorState::kUnmapped ? 1 : 0;
    }
    result_.output_order = table_.output_order;
    // Of every second tensor or fewer: pieces are large, and what is named stands for many nodes.
    if (setup_.two_models && 2 * result_.unmapped > table_.tensors.size())
      result_.notes.push_back(
          fmt::format("{} of {} tensors of the reference have no counterpart in the candidate, by "
                      "name or by what makes and reads them: what is named stands for all nodes "
                      "between tensors that both have; a record of names helps (--names)",
                      result_.unmapped, table_.tensors.size()));
    if (!table_.output_order.empty())
      result_.notes.push_back("the outputs stand in another order: " + table_.output_order);
    if (!table_.own_missing.empty())
      result_.notes.push_back("own errors were not measured: " + table_.own_missing);
    for (const SelectionError& one : table_.selections) {
      if (!one.accumulated) continue;
      LocatedSelection found;
      found.label = one.selection.label;
      found.agreement = *one.accumulated;
      found.limit = one.accumulated_limit;
      found.differs = found.agreement.same_position < found.agreement.chosen ||
                      found.agreement.in_common < found.agreement.chosen;
      found.beyond_ties = found.agreement.margin > found.limit || found.agreement.invalid > 0 ||
                          found.agreement.disorder > found.limit;
      result_.selections.push_back(std::move(found));
    }
    return {};
  }

  // Whether no tensor has a sixteenth of the error that storing it would give. What computes in
  // float32, in whatever order, is nearer by far (2^-13 of float16's); a device that keeps parts of
  // a graph on the cpu still stores the others. Own errors, as accumulated ones may have grown.
  bool rounds_nowhere() const {
    std::size_t rounded = 0;
    for (const TensorErrors& one : table_.tensors) {
      const auto& figures = result_.with_own > 0 ? one.own : one.accumulated;
      if (!figures || figures->storage.relative_l2 <= 0) continue;
      ++rounded;
      const double error = figures->error.relative_l2.value_or(0);
      if (error > figures->storage.relative_l2 / 16) return false;
    }
    return rounded > 0;
  }

  // A device that rounds, and gives what does not round.
  bool is_copy() {
    // What the cpu, a recording or a program stores is not known to be what --storage says.
    const bool device =
        result_.on != "cpu" && !result_.on.starts_with("exec:") && !on_recorded_ && !ref_recorded_;
    if (!device || setup_.settings.storage == DType::kFloat32 || result_.tensors == 0 ||
        setup_.two_models || result_.ref == result_.on || !rounds_nowhere())
      return false;
    const bool equal = result_.identical == result_.tensors;
    result_.verdict = Verdict::kFail;
    Suspect suspect;
    suspect.node = fmt::format("executor '{}'", result_.on);
    suspect.kind = {FaultKind::kCopy,
                    equal ? "every tensor equals the reference's bit for bit"
                          : "no tensor is rounded to what it stores",
                    1};
    result_.suspects.push_back(suspect);
    result_.headline = fmt::format(
        "'{}' is the reference itself: {}, though it stores {}, which would round them; nothing "
        "ran on a device (see tenonnx placement)",
        result_.on,
        equal ? fmt::format("all {} are equal bit for bit", counted(result_.tensors, "tensor"))
              : fmt::format("all {} are computed as finely as float32 is",
                            counted(result_.tensors, "tensor")),
        to_string(result_.storage));
    return true;
  }

  Status judge_whole() {
    TENONNX_ASSIGN_OR_RETURN(
        judge_, OutputJudge::make(setup_, options_.common.load, options_.common.progress));
    result_.gate = judge_->gate();
    result_.has_task = judge_->has_task();
    result_.reference_top_score = judge_->reference_top_score();
    TENONNX_ASSIGN_OR_RETURN(
        RankedSuspects ranked,
        rank_suspects(setup_, table_, options_.common.load, options_.suspects));
    result_.suspects = std::move(ranked.suspects);
    failing_ = std::move(ranked.failing);
    stands_out_ = ranked.stands_out;
    return {};
  }

  Status try_sides() {
    const auto graphs = KeptGraphs::make(setup_, table_);
    if (!graphs.ok()) {
      result_.notes.push_back("no trials: " + graphs.status().message());
      return {};
    }
    TrialsOptions options;
    options.load = options_.common.load;
    options.budget = options_.budget;
    options.resume = options_.common.resume;
    options.progress = options_.common.progress;
    if (!journals_[2].path().empty()) options.journal = journals_[2].path() / "trials.json";
    TENONNX_ASSIGN_OR_RETURN(Trials trials, Trials::make(setup_, *graphs, *judge_, options));
    const Status status = search(trials);
    result_.trials = trials.used();
    result_.recalled = trials.recalled();
    return status;
  }

  Status search(Trials& trials) {
    TENONNX_ASSIGN_OR_RETURN(result_.whole, trials.keep({}, true));
    if (!result_.whole || result_.whole->figures.passes) return {};
    TENONNX_ASSIGN_OR_RETURN(CrossSplits splits,
                             cross_splits(trials, setup_.candidate(), named_, options_.max_cuts));
    result_.sides = splits.sentences;
    TENONNX_ASSIGN_OR_RETURN(FoundSets sets, find_node_sets(trials, failing_, splits.halves));
    result_.keep = std::move(sets.keep);
    result_.breaks = std::move(sets.breaks);
    result_.alternatives = std::move(sets.alternatives);
    for (std::string& note : sets.notes) result_.notes.push_back(std::move(note));
    TENONNX_RETURN_IF_ERROR(try_alone(trials));
    result_.waterfall = waterfall(splits, *result_.whole, result_.suspects, theirs_);
    result_.cuts = std::move(splits.cuts);
    return {};
  }

  // Whoever breaks the task alone comes first.
  Status try_alone(Trials& trials) {
    for (Suspect& suspect : result_.suspects) {
      std::set<int> nodes;
      for (const int n : {suspect.candidate_node, suspect.culprit})
        if (n >= 0) nodes.insert(n);
      if (nodes.empty() || !stands_out_) continue;
      TENONNX_ASSIGN_OR_RETURN(const auto trial, trials.keep(trials.without(nodes)));
      if (trial) suspect.alone_breaks = !trial->figures.passes;
    }
    // Of several values that do not fit the first comes first: it may be all that is wrong.
    std::stable_sort(result_.suspects.begin(), result_.suspects.end(),
                     [](const Suspect& a, const Suspect& b) {
                       const bool a_breaks = a.alone_breaks.value_or(false);
                       const bool b_breaks = b.alone_breaks.value_or(false);
                       if (a_breaks != b_breaks) return a_breaks;
                       return a.kind.kind == FaultKind::kRange &&
                              b.kind.kind == FaultKind::kRange && a.place() < b.place();
                     });
    return {};
  }

  // It explains what stands already: what goes wrong here is a note.
  void explain_contract() {
    const InputSource* images = setup_.inputs.images();
    const bool recorded = ref_recorded_ || on_recorded_;
    if (!result_.fails() || images == nullptr || !(setup_.two_models || recorded)) return;
    FedSides sides{{setup_.ref.get(), &setup_.reference, "reference"},
                   {setup_.on.get(), &setup_.candidate(), "candidate"}};
    if (ref_recorded_) std::swap(sides.runnable, sides.other);
    auto found = explain_difference(sides, setup_.contract, *images, options_.common.load);
    if (found.ok())
      result_.contract = std::move(*found);
    else
      result_.notes.push_back("mistakes in feeding the model were not tried: " +
                              found.status().message());
  }

  Status write_files() {
    if (!options_.node_list.empty() && !result_.keep)
      result_.notes.push_back(fmt::format("no set of nodes was found, so '{}' was not written",
                                          options_.node_list.string()));
    if (!options_.node_list.empty() && result_.keep)
      TENONNX_RETURN_IF_ERROR(write_file_atomic(
          options_.node_list,
          node_list_text(theirs_, {result_.keep->indices.begin(), result_.keep->indices.end()},
                         {fmt::format("nodes of {} to keep at the reference ('{}' fails with them)",
                                      result_.candidate, result_.on),
                          "tenonnx deploy MODEL --target TARGET --keep-on-cpu THIS_FILE"})));
    if (!options_.node_list.empty() && result_.keep && result_.on.starts_with("qnn:"))
      TENONNX_RETURN_IF_ERROR(write_affinity());
    if (!options_.minimal.empty() && result_.verdict != Verdict::kFail)
      result_.notes.push_back(
          fmt::format("nothing fails, so '{}' was not written", options_.minimal.string()));
    if (!options_.minimal.empty() && !result_.suspects.empty() && result_.verdict == Verdict::kFail)
      TENONNX_RETURN_IF_ERROR(
          write_minimal_case(options_.minimal, setup_, table_, result_, options_.common.load));
    return {};
  }

  // The provider's own form of the list knows operator types alone.
  Status write_affinity() {
    std::set<std::string> operators;
    for (const int n : result_.keep->indices) operators.insert(theirs_.graph().node(n).op_type());
    std::filesystem::path file = options_.node_list;
    file += ".affinity.json";
    result_.notes.push_back(
        fmt::format("'{}' is for the provider's op_affinity (qnn:...,op_affinity=FILE). It knows "
                    "operator types "
                    "alone: every {} of the model goes to the CPU, and one type may move the whole "
                    "graph there; "
                    "look at it with tenonnx placement",
                    file.filename().string(), fmt::join(operators, ", ")));
    return write_file_atomic(file, qnn_affinity_json(operators));
  }

  const LocateOptions& options_;
  CompareSetup& setup_;
  const GraphIndex theirs_;
  LocateResult result_;
  ErrorTable table_;
  std::optional<OutputJudge> judge_;
  std::vector<CompareJournal> journals_;
  std::vector<int> failing_;
  std::vector<std::string> named_;  // tensors of --cut
  bool stands_out_ = false, ref_recorded_ = false, on_recorded_ = false;
};

}  // namespace

Result<LocateResult> locate(const LocateOptions& options, CompareSetup& setup) {
  return Locator(options, setup).run();
}

Result<LocateResult> locate(const LocateOptions& options) {
  TENONNX_ASSIGN_OR_RETURN(CompareSetup setup, set_up_comparison(options.common));
  return locate(options, setup);
}

}  // namespace tenonnx
