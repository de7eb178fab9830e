// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare_windows.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/parallel.h"
#include "base/status.h"
#include "passes/layout.h"

namespace tenonnx {
namespace {

// Of the memory that is allowed: two sides are held at a time, and what the runtime has between its
// nodes is about as much again as one. With several inputs the sessions stay, and each keeps the
// memory of its largest run.
constexpr std::int64_t kShares = 3, kSharesOfSeveral = 6;

std::string where_of(std::string_view side, const Executor& executor) {
  return fmt::format("the {} on '{}'", side, executor.address());
}

// The candidate's tensor in the reference's layout. One of another rank stays as it is, and shows
// as another shape.
Tensor in_layout(const PlannedTensor& planned, const Tensor& candidate) {
  if (planned.perm.empty() || planned.perm.size() != candidate.shape().size()) return candidate;
  return transposed(candidate, planned.perm);
}

// One graph of one side, loaded for a window.
class Side {
 public:
  Side(std::string title, const Executor& executor, const Model& model,
       std::vector<std::string> outputs, const LoadOptions& options, bool keep)
      : title_(std::move(title)),
        executor_(executor),
        model_(model),
        outputs_(std::move(outputs)),
        options_(options),
        keep_(keep) {}

  Result<TensorMap> run(const ReferenceInput& input, std::size_t position,
                        const TensorMap& indices) {
    if (outputs_.empty()) return TensorMap();
    if (graph_ == nullptr) {
      auto loaded = load_with_outputs(executor_, model_, outputs_, options_);
      if (!loaded.ok()) return loaded.status().at(where_of(title_, executor_));
      graph_ = std::move(*loaded);
    }
    TensorMap feeds = inputs_of(*graph_, input.tensors);
    for (auto& [name, tensor] : inputs_of(*graph_, indices)) feeds.emplace(name, tensor);
    const std::string where =
        fmt::format("{}, input '{}'", where_of(title_, executor_), input.name);
    TENONNX_RETURN_IF_ERROR(graph_->select_case(input.name, position).at(where));
    auto ran = graph_->run(feeds);
    // A session holds the memory of its largest run; with one input nothing needs it again.
    if (!keep_) graph_.reset();
    if (!ran.ok()) return ran.status().at(where);
    return ran;
  }

 private:
  const std::string title_;
  const Executor& executor_;
  const Model& model_;
  const std::vector<std::string> outputs_;
  const LoadOptions options_;
  const bool keep_;
  std::unique_ptr<LoadedGraph> graph_;
};

// One window: which tensors, under which names, on which side.
class WindowRun {
 public:
  WindowRun(const WindowsRequest& request, const Model& forced, std::vector<std::size_t> items)
      : request_(request), plan_(*request.plan), forced_(forced), items_(std::move(items)) {
    std::set<std::string> ours, theirs;
    for (const std::size_t i : items_) {
      const PlannedTensor& one = plan_.tensors[i];
      for (const int s : one.behind) {
        const std::string& name = plan_.candidate_indices[static_cast<std::size_t>(s)];
        if (!name.empty()) theirs.insert(name);
      }
      if (one.selected_by >= 0) {
        const Selection& selection = plan_.selections[static_cast<std::size_t>(one.selected_by)];
        for (const std::string& name : {selection.scores, selection.boxes})
          if (!name.empty() && !is_input(name)) ours.insert(name);
        theirs.insert(one.candidate);
        continue;
      }
      ours.insert(one.tensor.name);
      theirs.insert(one.candidate);
    }
    reference_outputs_.assign(ours.begin(), ours.end());
    candidate_outputs_.assign(theirs.begin(), theirs.end());
  }

  Result<WindowFigures> run() {
    const bool keep = request_.inputs->size() > 1;
    LoadOptions exact = request_.load;
    exact.optimization = Optimization::kDisabled;
    Side candidate("candidate", *request_.on, *request_.candidate, candidate_outputs_,
                   request_.load, keep);
    Side reference("reference", *request_.ref, forced_, reference_outputs_, exact, keep);
    std::vector<std::unique_ptr<Side>> floors;
    for (const FloorRun& floor : request_.floors) {
      LoadOptions options = request_.load;
      options.optimization = floor.optimization;
      floors.push_back(std::make_unique<Side>("noise floor", *floor.executor, forced_,
                                              floor_outputs(), options, keep));
    }
    // A recorded reference is of another machine, or of a graph that is wrong: its distance to a
    // run of this one is no noise. The floor lies between two runs of the graph.
    const std::unique_ptr<Executor> cpu = request_.ref_is_recorded ? make_cpu_executor() : nullptr;
    std::optional<Side> computed;
    if (cpu != nullptr && !floors.empty())
      computed.emplace("noise floor", *cpu, forced_, floor_outputs(), exact, keep);
    // The outputs as both sides left them: what a comparison row by row would have seen.
    Side unmatched("reference", *request_.ref, *request_.reference, reordered_outputs(), exact,
                   keep);
    comparisons_.resize(items_.size());
    for (std::size_t i = 0; i < request_.inputs->size(); ++i) {
      TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, request_.inputs->load(i));
      TENONNX_ASSIGN_OR_RETURN(TensorMap theirs, candidate.run(input, i, {}));
      TENONNX_ASSIGN_OR_RETURN(const TensorMap indices, indices_for_reference(theirs));
      TENONNX_ASSIGN_OR_RETURN(const TensorMap ours, reference.run(input, i, indices));
      TENONNX_RETURN_IF_ERROR(compare(input, ours, theirs));
      TENONNX_RETURN_IF_ERROR(compare_selections(input, ours, theirs));
      TENONNX_ASSIGN_OR_RETURN(const TensorMap as_they_are, unmatched.run(input, i, {}));
      compare_unmatched(as_they_are, theirs);
      theirs.clear();
      TensorMap exactly;
      if (computed) {
        TENONNX_ASSIGN_OR_RETURN(exactly, computed->run(input, i, indices));
      }
      for (std::size_t f = 0; f < floors.size(); ++f) {
        if (request_.floors[f].when_exceeded && !any_exceeds()) continue;
        TENONNX_ASSIGN_OR_RETURN(const TensorMap floor, floors[f]->run(input, i, indices));
        TENONNX_RETURN_IF_ERROR(
            compare_floor(computed ? exactly : ours, floor, request_.floors[f].origin));
      }
    }
    WindowFigures figures;
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (comparisons_[i].inputs > 0) figures.tensors.emplace_back(items_[i], comparisons_[i]);
    for (auto& [selection, agreement] : agreements_)
      figures.selections.emplace_back(static_cast<std::size_t>(selection), agreement);
    return figures;
  }

 private:
  bool is_input(const std::string& name) const {
    const auto inputs = request_.reference->inputs();
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const TensorInfo& info) { return info.name == name; });
  }

  std::vector<std::string> floor_outputs() const {
    std::vector<std::string> out;
    for (const std::size_t i : items_)
      if (plan_.tensors[i].selected_by < 0) out.push_back(plan_.tensors[i].tensor.name);
    return out;
  }

  std::vector<std::string> reordered_outputs() const {
    std::vector<std::string> out;
    const auto inputs = forced_.inputs();
    if (inputs.size() == request_.reference->inputs().size()) return out;  // nothing was forced
    for (const std::size_t i : items_) {
      const PlannedTensor& one = plan_.tensors[i];
      if (one.is_output && one.selected_by < 0 && !one.behind.empty())
        out.push_back(one.tensor.name);
    }
    return out;
  }

  void compare_unmatched(const TensorMap& ours, const TensorMap& theirs) {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const PlannedTensor& one = plan_.tensors[items_[i]];
      const auto a = ours.find(one.tensor.name), b = theirs.find(one.candidate);
      if (a == ours.end() || b == theirs.end()) continue;
      const auto error = compare_tensors(a->second, in_layout(one, b->second));
      if (!error.ok() || !error->cosine) continue;  // another number of rows, or integers
      std::optional<double>& cosine = comparisons_[i].unmatched_cosine;
      cosine = std::min(cosine.value_or(1), *error->cosine);
    }
  }

  // What the candidate chose, under the reference's names, for the graph that takes it.
  Result<TensorMap> indices_for_reference(const TensorMap& theirs) const {
    TensorMap out;
    for (const TensorInfo& info : forced_.inputs()) {
      for (std::size_t s = 0; s < plan_.selections.size(); ++s) {
        const Selection& selection = plan_.selections[s];
        if (selection.indices != info.name) continue;
        const auto found = theirs.find(plan_.candidate_indices[s]);
        if (found == theirs.end()) continue;  // not needed in this window
        if (found->second.dtype() != DType::kInt64 && found->second.dtype() != DType::kInt32)
          return InvalidArgument("the candidate's indices '{}' are {}, not int64 or int32",
                                 found->first, to_string(found->second.dtype()));
        const Shape scores = scores_shape(selection);
        const Shape lengths =
            selection.op_type == "NonMaxSuppression" ? scores : Shape{length_of(selection, scores)};
        out.emplace(info.name, usable_indices(found->second, info.dtype, lengths));
      }
    }
    return out;
  }

  // Empty where it is not known.
  Shape scores_shape(const Selection& selection) const {
    for (const PlannedTensor& one : plan_.tensors)
      if (one.tensor.name == selection.scores) return one.tensor.info.shape;
    for (const TensorInfo& info : request_.reference->inputs())
      if (info.name == selection.scores) return info.shape;
    return {};
  }

  // Of the axis that is chosen along; 0 where it is not known.
  static std::int64_t length_of(const Selection& selection, const Shape& shape) {
    const int axis = selection.spec.axis < 0 ? selection.spec.axis + static_cast<int>(shape.size())
                                             : selection.spec.axis;
    if (axis < 0 || axis >= static_cast<int>(shape.size())) return 0;
    return std::max<std::int64_t>(0, shape[static_cast<std::size_t>(axis)]);
  }

  // Whether the reference kept its own rows behind some selection: NonMaxSuppression chooses as
  // many as it likes.
  bool has_own_rows(const PlannedTensor& one) const {
    return std::any_of(one.behind.begin(), one.behind.end(), [&](int s) {
      return request_.ref_is_recorded ||
             plan_.candidate_indices[static_cast<std::size_t>(s)].empty();
    });
  }

  Status compare(const ReferenceInput& input, const TensorMap& ours, const TensorMap& theirs) {
    return parallel_for(
        items_.size(), request_.load.intra_op_threads, [&](std::size_t i) -> Status {
          const PlannedTensor& one = plan_.tensors[items_[i]];
          const auto candidate = theirs.find(one.candidate);
          if (candidate == theirs.end()) return {};
          if (one.selected_by >= 0) return {};
          const auto reference = ours.find(one.tensor.name);
          if (reference == ours.end()) return {};
          const Tensor aligned = in_layout(one, candidate->second);
          // Without figures it is INCONCLUSIVE. An output of another shape is an error.
          if (reference->second.shape() != aligned.shape() && (has_own_rows(one) || !one.is_output))
            return {};
          CompareSettings settings = settings_for(one, request_.settings);
          if (one.is_output && request_.contract != nullptr)
            settings.range = declared_range(*request_.contract, one.tensor.name, input.tensors);
          return add_candidate(comparisons_[i], reference->second, aligned, settings, input.name)
              .at(fmt::format("tensor '{}', input '{}'", one.tensor.name, input.name));
        });
  }

  // What the candidate chose against the reference's scores (and boxes, of a NonMaxSuppression).
  Status compare_selections(const ReferenceInput& input, const TensorMap& ours,
                            const TensorMap& theirs) {
    for (const std::size_t item : items_) {
      const int s = plan_.tensors[item].selected_by;
      if (s < 0) continue;
      const Selection& selection = plan_.selections[static_cast<std::size_t>(s)];
      const auto indices = theirs.find(plan_.tensors[item].candidate);
      const Tensor* scores = find(selection.scores, ours, input.tensors);
      const Tensor* boxes = find(selection.boxes, ours, input.tensors);
      if (indices == theirs.end() || scores == nullptr) continue;
      if (selection.suppression && boxes == nullptr) continue;
      auto agreement =
          selection.suppression
              ? compare_suppression(*boxes, *scores, indices->second, *selection.suppression)
              : compare_selection(*scores, indices->second, selection.spec);
      if (!agreement.ok())
        return agreement.status().at(fmt::format("{}, input '{}'", selection.label, input.name));
      join_worst(agreements_[s], *agreement);
    }
    return {};
  }

  // Computed by the reference, or fed to it.
  static const Tensor* find(const std::string& name, const TensorMap& ours,
                            const TensorMap& inputs) {
    for (const TensorMap* map : {&ours, &inputs})
      if (const auto found = map->find(name); found != map->end()) return &found->second;
    return nullptr;
  }

  Status compare_floor(const TensorMap& ours, const TensorMap& floor, const std::string& origin) {
    return parallel_for(items_.size(), request_.load.intra_op_threads,
                        [&](std::size_t i) -> Status {
                          const std::string& name = plan_.tensors[items_[i]].tensor.name;
                          const auto a = ours.find(name), b = floor.find(name);
                          if (comparisons_[i].inputs == 0 || a == ours.end() || b == floor.end())
                            return {};
                          return add_floor(comparisons_[i], a->second, b->second, origin)
                              .at(fmt::format("noise floor of tensor '{}'", name));
                        });
  }

  bool any_exceeds() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (comparisons_[i].inputs == 0 || comparisons_[i].error.broken > 0 ||
          comparisons_[i].non_finite.lost > 0)
        continue;
      TensorComparison copy = comparisons_[i];
      judge(copy, "", request_.settings);
      if (copy.check.verdict == Verdict::kFail) return true;
    }
    return false;
  }

  const WindowsRequest& request_;
  const ComparePlan& plan_;
  const Model& forced_;
  const std::vector<std::size_t> items_;
  std::vector<std::string> reference_outputs_, candidate_outputs_;
  std::vector<TensorComparison> comparisons_;  // by items_
  std::map<int, SelectionAgreement> agreements_;
};

// The selections whose indices the reference takes from the candidate in a window.
std::set<int> forced_in(const WindowsRequest& request, const std::vector<std::size_t>& items) {
  std::set<int> which;
  if (request.ref_is_recorded) return which;
  for (const std::size_t i : items) {
    const PlannedTensor& one = request.plan->tensors[i];
    for (const int s : one.behind)
      if (s != one.selected_by &&
          !request.plan->candidate_indices[static_cast<std::size_t>(s)].empty())
        which.insert(s);
  }
  return which;
}

}  // namespace

Result<ComparedTensors> run_windows(const WindowsRequest& request) {
  const ComparePlan& plan = *request.plan;
  ComparedTensors out;
  out.tensors.resize(plan.tensors.size());
  out.selections.resize(plan.selections.size());
  std::vector<std::size_t> compared;
  std::vector<std::int64_t> bytes;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].state != TensorState::kCompared) continue;
    compared.push_back(i);
    bytes.push_back(plan.tensors[i].tensor.bytes);
  }
  std::map<std::set<int>, Model> forced;  // one graph for many windows
  const std::int64_t shares = request.inputs->size() > 1 ? kSharesOfSeveral : kShares;
  for (const Window& window : plan_windows(bytes, request.memory / shares)) {
    if (request.progress)
      request.progress("compare", static_cast<std::int64_t>(window.begin),
                       static_cast<std::int64_t>(compared.size()));
    std::optional<WindowFigures> figures;
    if (request.recall) figures = request.recall(window.begin);
    out.recalled += figures ? 1 : 0;
    out.reused += figures ? window.end - window.begin : 0;
    if (!figures) {
      const std::vector<std::size_t> items(
          compared.begin() + static_cast<std::ptrdiff_t>(window.begin),
          compared.begin() + static_cast<std::ptrdiff_t>(window.end));
      const std::set<int> which = forced_in(request, items);
      auto found = forced.find(which);
      if (found == forced.end()) {
        TENONNX_ASSIGN_OR_RETURN(Model model,
                                 force_selections(*request.reference, plan.selections, which));
        found = forced.emplace(which, std::move(model)).first;
      }
      TENONNX_ASSIGN_OR_RETURN(figures, WindowRun(request, found->second, items).run());
      if (request.remember) TENONNX_RETURN_IF_ERROR(request.remember(window.begin, *figures));
    }
    for (auto& [i, tensor] : figures->tensors) out.tensors.at(i) = std::move(tensor);
    for (auto& [i, selection] : figures->selections) out.selections.at(i) = selection;
    ++out.windows;
  }
  if (request.progress)
    request.progress("compare", static_cast<std::int64_t>(compared.size()),
                     static_cast<std::int64_t>(compared.size()));
  return out;
}

CompareSettings settings_for(const PlannedTensor& tensor, CompareSettings settings) {
  settings.mixed = tensor.is_output || tensor.op_type == "Concat";
  settings.softmax = tensor.op_type == "Softmax";
  if (!tensor.is_output) settings.gates.clear();
  settings.name = tensor.tensor.name;
  settings.softmax_axis = tensor.axis;
  return settings;
}

}  // namespace tenonnx
