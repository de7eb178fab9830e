// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/own_errors.h"

#include <algorithm>
#include <memory>

#include "base/status.h"
#include "flow/noise_path.h"
#include "numerics/decoupled.h"

namespace tenonnx {
namespace {

// The candidate has it, and in the reference's layout.
bool is_shared(const PlannedTensor& tensor) {
  return tensor.state == TensorState::kCompared && tensor.perm.empty();
}

class Measurer {
 public:
  explicit Measurer(const ErrorsRequest& request) : request_(request), setup_(*request.setup) {}

  Result<ErrorTable> run() {
    PlanRequest plan;
    plan.reference = &setup_.reference;
    plan.candidate = setup_.two_models ? &setup_.other : nullptr;
    plan.names = setup_.two_models ? &setup_.names : nullptr;
    plan.names_file = setup_.names_file;
    TENONNX_ASSIGN_OR_RETURN(ref_recorded_, add_recorded(*setup_.ref, setup_.source, plan));
    TENONNX_ASSIGN_OR_RETURN(
        on_recorded_,
        add_recorded(*setup_.on, setup_.two_models ? setup_.other : setup_.source, plan));
    TENONNX_ASSIGN_OR_RETURN(plan_, plan_comparison(plan));
    settings_ = setup_.settings;
    settings_.masks = mask_magnitudes(setup_.reference, settings_.storage);
    TENONNX_ASSIGN_OR_RETURN(paths_,
                             noise_paths(setup_.reference, settings_.storage, setup_.forms));

    TENONNX_ASSIGN_OR_RETURN(ComparedTensors accumulated, run_accumulated());
    ErrorTable table;
    table.output_order = plan_.output_order;
    table.windows = accumulated.windows;
    table.recalled = accumulated.recalled;
    for (std::size_t i = 0; i < plan_.tensors.size(); ++i) {
      PlannedTensor& planned = plan_.tensors[i];
      // Of another shape in the candidate: it cannot be fed.
      if (is_shared(planned) && planned.selected_by < 0 && planned.behind.empty() &&
          !accumulated.tensors[i])
        planned.state = TensorState::kUnmapped;
      table.tensors.push_back({planned, std::move(accumulated.tensors[i]), {}});
    }
    for (std::size_t i = 0; i < plan_.selections.size(); ++i)
      table.selections.push_back({plan_.selections[i], accumulated.selections[i], {}, 0, 0});
    if (on_recorded_) {
      table.own_missing =
          "the candidate is a recording: it cannot be fed with the reference's tensors";
    } else {
      auto own = run_own();
      if (own.ok()) {
        table.windows += own->windows;
        table.recalled += own->recalled;
        for (std::size_t i = 0; i < plan_.tensors.size(); ++i)
          table.tensors[i].own = std::move(own->tensors[i]);
        for (std::size_t i = 0; i < plan_.selections.size(); ++i)
          table.selections[i].own = own->selections[i];
      } else {
        table.own_missing = own.status().message();
      }
    }
    judge_all(table);
    return table;
  }

 private:
  WindowsRequest windows(const ComparePlan& plan, const CompareJournal* journal,
                         std::string_view step) const {
    WindowsRequest out;
    out.plan = &plan;
    out.reference = &setup_.reference;
    out.candidate = &setup_.candidate();
    out.ref = setup_.ref.get();
    out.on = setup_.on.get();
    out.ref_is_recorded = ref_recorded_;
    out.floors = paths_.runs;
    out.inputs = &setup_.inputs;
    if (setup_.contract_is_declared) out.contract = &setup_.contract;
    out.settings = settings_;
    out.load = request_.load;
    out.memory = request_.memory;
    if (request_.progress)
      out.progress = [progress = request_.progress, step](std::string_view, std::int64_t done,
                                                          std::int64_t of) {
        progress(step, done, of);
      };
    if (journal != nullptr) {
      out.recall = [journal](std::size_t begin) { return journal->recall(begin); };
      out.remember = [journal](std::size_t begin, const WindowFigures& figures) {
        return journal->remember(begin, figures);
      };
    }
    return out;
  }

  Result<ComparedTensors> run_accumulated() const {
    return run_windows(windows(plan_, request_.accumulated, "accumulated errors"));
  }

  Result<ComparedTensors> run_own() {
    // The reference's tensors are fed, so that nothing lies behind what the device selects.
    ComparePlan plan = plan_;
    FedTensors theirs, ours;  // names in the candidate, in the reference
    std::set<int> selecting;
    for (const Selection& selection : plan.selections) selecting.insert(selection.node);
    for (PlannedTensor& tensor : plan.tensors) {
      // In another layout it cannot be fed as it is: the piece behind it then begins before it.
      if (is_shared(tensor)) theirs.emplace(tensor.candidate, tensor.tensor.name);
      tensor.behind.clear();
      // What a selection gives out beside its indices is in the order in which it chose.
      if (tensor.selected_by < 0 && selecting.contains(tensor.tensor.node))
        tensor.state = TensorState::kUnmapped;
      ours.emplace(tensor.tensor.name, tensor.tensor.name);
    }
    ReferenceTensors reference(*setup_.ref, setup_.reference, setup_.inputs, request_.load);
    const DecoupledExecutor device(*setup_.on, theirs, reference);
    std::vector<std::unique_ptr<Executor>> floors;
    WindowsRequest request = windows(plan, request_.own, "own errors");
    request.on = &device;
    for (FloorRun& floor : request.floors) {
      floors.push_back(std::make_unique<DecoupledExecutor>(*floor.executor, ours, reference));
      floor.executor = floors.back().get();
      floor.origin = floor.origin == "two optimisation levels" ? floor.origin : "its own rounding";
    }
    return run_windows(request);
  }

  void judge_all(ErrorTable& table) const {
    for (TensorErrors& tensor : table.tensors) {
      const CompareSettings settings = settings_for(tensor.plan, settings_);
      for (auto* figures : {&tensor.accumulated, &tensor.own})
        if (*figures) judge(**figures, tensor.plan.tensor.name, settings);
      if (!tensor.accumulated) continue;
      ++table.compared;
      table.identical += tensor.accumulated->error.differing == 0 ? 1 : 0;
    }
    for (SelectionError& one : table.selections) {
      const auto scores = std::find_if(
          table.tensors.begin(), table.tensors.end(),
          [&](const TensorErrors& t) { return t.plan.tensor.name == one.selection.scores; });
      if (scores == table.tensors.end()) continue;
      const auto twice = [&](double floor) { return 2 * settings_.factor * floor; };
      if (scores->accumulated) {
        one.own_limit = twice(scores->accumulated->storage.max_abs);
        one.accumulated_limit = twice(
            std::max(scores->accumulated->storage.max_abs, scores->accumulated->path.max_abs));
      }
    }
  }

  const ErrorsRequest& request_;
  const CompareSetup& setup_;
  ComparePlan plan_;
  CompareSettings settings_;
  NoisePaths paths_;
  bool ref_recorded_ = false, on_recorded_ = false;
};

}  // namespace

std::size_t ErrorTable::with_own() const {
  return static_cast<std::size_t>(std::count_if(
      tensors.begin(), tensors.end(), [](const TensorErrors& one) { return one.own.has_value(); }));
}

FedTensors shared_tensors(const ErrorTable& table) {
  FedTensors out;
  for (const TensorErrors& one : table.tensors)
    if (is_shared(one.plan)) out.emplace(one.plan.candidate, one.plan.tensor.name);
  return out;
}

Result<ErrorTable> measure_errors(const ErrorsRequest& request) { return Measurer(request).run(); }

}  // namespace tenonnx
