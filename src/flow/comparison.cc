// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/comparison.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "metrics/elements.h"

namespace tenonnx {
namespace {

Json row_figures(const RowError& rows) {
  return {{"rows", rows.rows},
          {"min_cosine", json_number(rows.min_cosine)},
          {"min_cosine_row", rows.min_cosine_row},
          {"max_relative_l2", json_number(rows.max_relative_l2)},
          {"max_relative_l2_row", rows.max_relative_l2_row}};
}

Json match_figures(const MatchResult& match) {
  double min_iou = 1, max_difference = 0;
  std::int64_t gated = 0;
  for (const DetectionPair& pair : match.pairs) {
    if (!pair.gated) continue;
    ++gated;
    min_iou = std::min(min_iou, pair.iou);
    max_difference = std::max(max_difference, pair.score_difference);
  }
  Json out = {{"reference_boxes", match.reference_strong},
              {"candidate_boxes", match.candidate_strong},
              {"matched", gated},
              {"unmatched_reference", match.unmatched_reference.size()},
              {"unmatched_candidate", match.unmatched_candidate.size()},
              {"reference_duplicates", match.reference_duplicates},
              {"candidate_duplicates", match.candidate_duplicates}};
  if (gated > 0) {
    out["min_iou"] = json_number(min_iou);
    out["max_score_difference"] = json_number(max_difference);
  }
  return out;
}

// Where rows do not correspond, Inf in another row is none too many.
void count_broken(TensorError& error) {
  const auto lost = [](const NonFiniteCount& count) { return count.inf + count.nan; };
  const std::int64_t more = lost(error.candidate) - lost(error.reference);
  error.broken = std::clamp<std::int64_t>(more, 0, error.broken);
  if (error.broken == 0) error.first_broken_index = -1;
}

}  // namespace

Status ChainComparison::add(const std::string& input, const Observation& reference,
                            const Observation& candidate) {
  Json tensors = Json::object();
  for (const std::string& name : order_) {
    const bool boundary = reference.boundaries.contains(name);
    const TensorMap& ours = boundary ? reference.boundaries : reference.outputs;
    const TensorMap& theirs = boundary ? candidate.boundaries : candidate.outputs;
    const auto a = ours.find(name), b = theirs.find(name);
    if (a == ours.end() || b == theirs.end() || !is_floating(a->second.dtype())) continue;
    TENONNX_ASSIGN_OR_RETURN(const Tensor left, to_float32(a->second));
    TENONNX_ASSIGN_OR_RETURN(const Tensor right, to_float32(b->second));
    // NonMaxSuppression chooses how many, too.
    if (selected_.contains(name) && left.shape() != right.shape()) continue;
    auto compared = compare_tensors(left, right);
    if (!compared.ok())
      return compared.status().at(fmt::format("tensor '{}' of '{}'", name, input));
    TENONNX_ASSIGN_OR_RETURN(const RowError rows, compare_rows(left, right));
    if (selected_.contains(name)) count_broken(*compared);
    const auto [entry, first] = tensors_.try_emplace(name);
    State& state = entry->second;
    const TensorError& error = *compared;
    if (error.broken > 0 && state.error.broken == 0) state.broken_input = input;
    if (first || (error.cosine && (!state.error.cosine || *error.cosine < *state.error.cosine)))
      state.worst_input = input;
    if (first)
      state.error = error;
    else
      join_worst(state.error, error);
    state.boundary = boundary;
    tensors[name] = to_json(error);
    tensors[name]["by_row"] = row_figures(rows);
  }
  summary_.add_image(input, reference.detections, candidate.detections);
  const MatchResult match = match_detections(reference.detections, candidate.detections);
  images_.push_back(
      {{"name", input},
       {"tensors", std::move(tensors)},
       {"scores_cosine", json_number(scores_cosine(reference.detections, candidate.detections))},
       {"detections", match_figures(match)}});
  return {};
}

std::string ChainComparison::first_broken() const {
  for (const std::string& name : order_) {
    const auto found = tensors_.find(name);
    if (found != tensors_.end() && found->second.error.broken > 0) return name;
  }
  return {};
}

// One check over all tensors: what matters is that there is none, and which is the first.
Check ChainComparison::finite() const {
  if (tensors_.empty())
    return inconclusive_check("Inf or NaN where the reference is finite", "no tensor was compared");
  std::int64_t broken = 0;
  for (const auto& [name, state] : tensors_) broken += state.error.broken;
  std::string note;
  if (const std::string first = first_broken(); !first.empty()) {
    const State& state = tensors_.at(first);
    note = fmt::format("first in '{}', element {}, of '{}'", first, state.error.first_broken_index,
                       state.broken_input);
  }
  return make_check("Inf or NaN where the reference is finite", static_cast<double>(broken),
                    Comparison::kAtMost, {0, "no element may overflow"}, note);
}

std::vector<Check> ChainComparison::checks(bool random_inputs) const {
  std::vector<Check> out;
  // Against evidence there are no tensors; outputs that are not finite do not decode.
  if (!tensors_.empty() || summary_.images == 0) out.push_back(finite());
  std::vector<Check> rest;
  for (const std::string& name : order_) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || !found->second.boundary || selected_.contains(name)) continue;
    if (auto check = feature_check(name, found->second.error, gates_)) {
      if (!found->second.worst_input.empty())
        check->note += fmt::format("{}worst in '{}'", check->note.empty() ? "" : "; ",
                                   found->second.worst_input);
      rest.push_back(std::move(*check));
    }
  }
  for (Check& check : task_checks(summary_, gates_)) rest.push_back(std::move(check));
  if (random_inputs) {
    for (Check& check : rest) {
      if (check.verdict != Verdict::kFail) continue;
      check.verdict = Verdict::kInconclusive;
      check.note = "random inputs: no failure and no pass";
    }
    rest.push_back(inconclusive_check("inputs", "random values, not images: give --images DIR"));
  }
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

std::size_t ChainComparison::boundaries() const {
  return static_cast<std::size_t>(std::count_if(
      tensors_.begin(), tensors_.end(), [](const auto& one) { return one.second.boundary; }));
}

std::size_t ChainComparison::selected_boundaries() const {
  return static_cast<std::size_t>(std::count_if(
      tensors_.begin(), tensors_.end(),
      [&](const auto& one) { return one.second.boundary && selected_.contains(one.first); }));
}

std::vector<TensorFigures> ChainComparison::figures() const {
  std::vector<TensorFigures> out;
  for (const std::string& name : order_) {
    const auto found = tensors_.find(name);
    if (found != tensors_.end())
      out.push_back({name, found->second.boundary, selected_.contains(name), found->second.error});
  }
  return out;
}

}  // namespace tenonnx
