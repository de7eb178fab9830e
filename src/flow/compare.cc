// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare.h"

#include <algorithm>

#include "adapters/files.h"
#include "base/files.h"
#include "base/status.h"
#include "contract/contract.h"
#include "flow/compare_checks.h"
#include "flow/compare_explain.h"
#include "flow/compare_journal.h"
#include "flow/compare_setup.h"
#include "flow/compare_windows.h"
#include "flow/deploy.h"
#include "flow/noise_path.h"
#include "flow/parts_executor.h"
#include "model/extract.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kExec = "exec:";

// Everything that a comparison is made of, in the order in which it is found out.
class Comparer {
 public:
  explicit Comparer(const CompareOptions& options) : options_(options) {}

  Result<CompareResult> run() {
    TENONNX_ASSIGN_OR_RETURN(setup_, set_up_comparison(options_));
    describe_setup();
    TENONNX_RETURN_IF_ERROR(make_plan());
    TENONNX_RETURN_IF_ERROR(measure_precision());
    TENONNX_ASSIGN_OR_RETURN(ComparedTensors compared, run_all());
    collect(std::move(compared));
    TENONNX_RETURN_IF_ERROR(add_checks());
    return std::move(result_);
  }

 private:
  void describe_setup() {
    result_.ref = options_.ref;
    result_.on = options_.on;
    result_.factor = setup_.settings.factor;
    result_.storage = setup_.settings.storage;
    result_.forms_of = setup_.forms.device;
    result_.reference = options_.reference.filename().string();
    result_.reference_sha256 = setup_.source.sha256();
    result_.candidate =
        setup_.two_models ? options_.candidate.filename().string() : result_.reference;
    result_.candidate_sha256 = setup_.two_models ? setup_.other.sha256() : result_.reference_sha256;
    result_.names = setup_.names_file;
    result_.inputs = setup_.inputs.description();
    result_.random_inputs = setup_.inputs.is_random();
    result_.notes = setup_.notes;
  }

  const Model& candidate() const { return setup_.candidate(); }

  // The gate 'map': before the tensors, so that labels that do not fit are known at once.
  Status measure_precision() {
    const auto& gates = options_.gates;
    if (std::find(gates.begin(), gates.end(), "map") == gates.end()) return {};
    PrecisionRequest request;
    request.reference = {setup_.ref.get(), &setup_.reference, {}, "reference"};
    request.candidate = {setup_.on.get(), &candidate(), setup_.names.renamed, "candidate"};
    request.contract = &setup_.contract;
    request.images = setup_.inputs.images();
    request.labels = find_labels(options_.labels, request.images->folder());
    request.load = options_.load;
    request.progress = options_.progress;
    TENONNX_ASSIGN_OR_RETURN(result_.precision, compare_precision(request));
    for (std::string& note : result_.precision->notes) result_.notes.push_back(std::move(note));
    return {};
  }

  Status make_plan() {
    PlanRequest request;
    request.reference = &setup_.reference;
    request.candidate = setup_.two_models ? &setup_.other : nullptr;
    request.tensors = options_.tensors;
    request.names = setup_.two_models ? &setup_.names : nullptr;
    request.names_file = result_.names.empty() ? "" : fmt::format("'{}'", result_.names);
    const auto of_ref = add_recorded(*setup_.ref, setup_.source, request);
    if (!of_ref.ok()) return of_ref.status().at("--ref");
    ref_recorded_ = *of_ref;
    const auto of_on =
        add_recorded(*setup_.on, setup_.two_models ? setup_.other : setup_.source, request);
    if (!of_on.ok()) return of_on.status().at("--on");
    const bool on_recorded = *of_on;
    TENONNX_RETURN_IF_ERROR(choose_cut(request, on_recorded));
    // Under which names there is more, where a recording lacks what is asked for.
    std::string recorded = what_is_recorded(*setup_.ref, setup_.source);
    if (on_recorded)
      recorded = what_is_recorded(*setup_.on, setup_.two_models ? setup_.other : setup_.source);
    auto plan = plan_comparison(request);
    if (!plan.ok())
      return recorded.empty()
                 ? plan.status()
                 : Status(plan.status().code(), fmt::format("{}. Of the recording: {}",
                                                            plan.status().message(), recorded));
    plan_ = std::move(plan).value();
    for (const PlannedTensor& tensor : plan_.tensors)
      if (tensor.is_output && tensor.state == TensorState::kNotRecorded)
        result_.notes.push_back(fmt::format("the output '{}' is not in the recording: {}",
                                            tensor.tensor.name, recorded));
    if (on_recorded) result_.taken = "as recorded";
    return {};
  }

  // --tensors boundary: the tensors of the cut, and the candidate in parts.
  Status choose_cut(PlanRequest& request, bool on_recorded) {
    result_.taken = "as added outputs";
    if (options_.tensors != "boundary") {
      if (!options_.cut.empty())
        return InvalidArgument("--cut '{}' is of --tensors boundary, got --tensors '{}'",
                               options_.cut, options_.tensors);
      return {};
    }
    std::vector<std::string> cut;
    if (!options_.cut.empty()) {
      TENONNX_ASSIGN_OR_RETURN(cut, parse_cut(options_.cut));
    } else if (const auto path = find_contract(options_.reference)) {
      TENONNX_ASSIGN_OR_RETURN(const Contract contract, read_contract(*path));
      cut = contract.cut;
    }
    request.boundary.emplace();
    std::vector<std::string> theirs;  // the candidate's names
    for (const std::string& name : cut) {
      TENONNX_ASSIGN_OR_RETURN(const std::string ours, resolve_tensor(setup_.reference, name));
      request.boundary->insert(ours);
      const auto renamed = setup_.names.renamed.find(ours);
      theirs.push_back(renamed == setup_.names.renamed.end() ? ours : renamed->second);
      TENONNX_RETURN_IF_ERROR(resolve_tensor(candidate(), theirs.back()).status().at("candidate"));
    }
    result_.taken = cut.empty() ? "as the outputs that the model has" : "at cuts, part after part";
    if (cut.empty() || on_recorded) return {};
    whole_on_ = std::move(setup_.on);
    setup_.on = std::make_unique<PartsExecutor>(*whole_on_, theirs);
    return {};
  }

  Result<ComparedTensors> run_all() {
    setup_.settings.masks = mask_magnitudes(setup_.reference, setup_.settings.storage);
    TENONNX_ASSIGN_OR_RETURN(NoisePaths paths,
                             noise_paths(setup_.reference, setup_.settings.storage, setup_.forms));
    TENONNX_ASSIGN_OR_RETURN(const std::string text, comparison_key(options_, setup_, "compare 3"));
    fs::path cache = options_.cache.empty() ? CompareJournal::default_directory() : options_.cache;
    if (options_.cache == "none") cache.clear();
    for (const std::string& address : {options_.ref, options_.on}) {
      if (!address.starts_with(kExec) || cache.empty()) continue;
      cache.clear();
      result_.notes.push_back(
          fmt::format("nothing is kept or reused for --resume: the program of '{}' may change "
                      "without its address changing",
                      address));
    }
    TENONNX_ASSIGN_OR_RETURN(const CompareJournal journal,
                             CompareJournal::open(cache, text, options_.resume));
    WindowsRequest request;
    request.plan = &plan_;
    request.reference = &setup_.reference;
    request.candidate = &candidate();
    request.ref = setup_.ref.get();
    request.on = setup_.on.get();
    request.ref_is_recorded = ref_recorded_;
    request.floors = paths.runs;
    request.inputs = &setup_.inputs;
    request.settings = setup_.settings;
    if (setup_.contract_is_declared) request.contract = &setup_.contract;
    request.load = options_.load;
    request.memory = options_.memory_mib << 20;
    request.progress = options_.progress;
    request.recall = [&](std::size_t begin) { return journal.recall(begin); };
    request.remember = [&](std::size_t begin, const WindowFigures& figures) {
      return journal.remember(begin, figures);
    };
    return run_windows(request);
  }

  void collect(ComparedTensors compared) {
    result_.windows = compared.windows;
    result_.recalled = compared.recalled;
    result_.reused = compared.reused;
    if (options_.resume)
      result_.notes.push_back(fmt::format(
          "--resume: figures of {} of {} compared tensors are reused from an equal earlier run",
          compared.reused, plan_.count(TensorState::kCompared)));
    for (std::size_t i = 0; i < plan_.tensors.size(); ++i)
      result_.tensors.push_back({std::move(plan_.tensors[i]), std::move(compared.tensors[i])});
    for (std::size_t i = 0; i < plan_.selections.size(); ++i)
      result_.selections.push_back(
          {plan_.selections[i],
           compared.selections[i],
           !ref_recorded_ && !plan_.candidate_indices[i].empty(),
           ref_recorded_
               ? "run the reference too (--ref cpu), which a recording cannot do with the "
                 "candidate's rows"
               : plan_.missing_indices[i],
           {}});
    result_.versions = versions_of(setup_);
  }

  Status add_checks() {
    judge_all(result_, setup_.settings);
    result_.checks = compare_checks(result_);
    if (!plan_.output_order.empty())
      result_.checks.push_back(inconclusive_check("order of the outputs", plan_.output_order));
    if (result_.precision) result_.checks.push_back(result_.precision->check);
    TENONNX_RETURN_IF_ERROR(check_folding());
    if (std::string note = floor_note(result_); !note.empty())
      result_.notes.push_back(std::move(note));
    for (std::string& note : order_notes(result_)) result_.notes.push_back(std::move(note));
    result_.verdict = overall_verdict(result_.checks);
    if (result_.verdict != Verdict::kPass) {
      // It explains a verdict that stands already: what goes wrong here is a note.
      const Status status = explain();
      if (!status.ok())
        result_.notes.push_back("mistakes in feeding the model were not tried: " +
                                status.message());
    }
    return {};
  }

  // The reference of everything above has its constants folded, so that no window computes them
  // again. That must change nothing.
  Status check_folding() {
    if (!setup_.folded || options_.ref != "cpu" || setup_.inputs.size() == 0) return {};
    TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, setup_.inputs.load(0));
    TENONNX_ASSIGN_OR_RETURN(Check check, folding_check(*setup_.ref, setup_.source,
                                                        setup_.reference, input, options_.load));
    result_.checks.push_back(std::move(check));
    return {};
  }

  // One model on two executors is fed with the same tensors on both sides; a recording, or another
  // model with its own preprocessing, may have been fed otherwise.
  Status explain() {
    const InputSource* images = setup_.inputs.images();
    const bool recorded = ref_recorded_ || result_.taken == "as recorded";
    if (images == nullptr || !(setup_.two_models || recorded)) return {};
    FedSides sides{{setup_.ref.get(), &setup_.reference, "reference"},
                   {setup_.on.get(), &candidate(), "candidate"}};
    if (ref_recorded_) std::swap(sides.runnable, sides.other);
    TENONNX_ASSIGN_OR_RETURN(result_.explanations,
                             explain_difference(sides, setup_.contract, *images, options_.load));
    return {};
  }

  const CompareOptions& options_;
  CompareResult result_;
  CompareSetup setup_;
  std::unique_ptr<Executor> whole_on_;
  bool ref_recorded_ = false;
  ComparePlan plan_;
};

}  // namespace

Result<CompareResult> compare(const CompareOptions& options) { return Comparer(options).run(); }

}  // namespace tenonnx
