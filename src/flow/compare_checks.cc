// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status.h"
#include "flow/compare_windows.h"

namespace tenonnx {
namespace {

bool same_rows(const ComparedSelection& selection) {
  return selection.agreement && selection.agreement->invalid == 0 &&
         selection.agreement->same_position == selection.agreement->chosen;
}

// Whether the figures behind a selection are those of rows that may be other detections.
bool unaligned(const TensorComparison& figures, const ComparedSelection& selection) {
  if (same_rows(selection)) return false;
  // Inf or NaN in a tensor that has none anywhere is wrong in whatever order.
  const NonFiniteCount& ours = figures.error.reference;
  if (figures.error.broken > 0 && ours.inf + ours.nan == 0) return false;
  if (!selection.forced) return true;
  // Forced rows whose choice was not judged (NonMaxSuppression) may differ for its sake.
  return !selection.agreement && figures.check.verdict == Verdict::kFail;
}

void leave_open(TensorComparison& figures, const ComparedSelection& selection) {
  const std::string why = fmt::format("behind {}, whose rows could not be brought together{}{}",
                                      selection.selection.label,
                                      selection.missing.empty() ? "" : ": ", selection.missing);
  figures.check.verdict = Verdict::kInconclusive;
  figures.check.note = why;
  for (Check& gate : figures.gates) {
    gate.verdict = Verdict::kInconclusive;
    gate.note = why;
  }
}

const ComparedTensor* find(const CompareResult& result, const std::string& name) {
  for (const ComparedTensor& tensor : result.tensors)
    if (tensor.plan.tensor.name == name) return &tensor;
  return nullptr;
}

// How far a score may be off: as far as it is, and no further than its tensor's limit. A selection
// that is right by the candidate's own scores then passes, whatever else one may think of these.
Limit score_limit(const CompareResult& result, const Selection& selection) {
  const ComparedTensor* scores = find(result, selection.scores);
  if (scores == nullptr || !scores->figures)  // the model's own input: both sides have the same
    return {0, "0: the scores are an input of the model"};
  const TensorComparison& figures = *scores->figures;
  const NoiseFloor& floor =
      figures.storage.max_abs > figures.path.max_abs ? figures.storage : figures.path;
  const Limit limit = limit_from_floor(floor, FloorFigure::kMaxAbs, result.factor);
  if (figures.error.max_abs > limit.value) return limit;
  return {figures.error.max_abs, "the largest error that the scores have"};
}

Check judge_selection(const CompareResult& result, const ComparedSelection& one) {
  const ComparedTensor* scores = find(result, one.selection.scores);
  const std::string name = fmt::format("set of {}", one.selection.label);
  if (one.agreement && one.agreement->invalid == 0 && scores != nullptr) {
    if (!scores->figures && one.agreement->margin > 0)
      return inconclusive_check(
          name, fmt::format("{} taken for {}, {:.3g} apart: a tie or an error, by how far its "
                            "scores '{}' may be off, which were not compared ({})",
                            one.agreement->taken, one.agreement->left_out, one.agreement->margin,
                            one.selection.scores, scores->plan.why));
    if (scores->figures && scores->figures->check.verdict == Verdict::kInconclusive)
      return inconclusive_check(
          name, fmt::format("its scores '{}' could not be judged: {}", one.selection.scores,
                            scores->figures->check.note));
  }
  if (one.agreement)
    return selection_check(one.selection.label, *one.agreement, score_limit(result, one.selection));
  return inconclusive_check(
      name, one.selection.scores.empty()
                ? "what a NonMaxSuppression chooses is not decided by its scores alone"
                : fmt::format("its scores '{}' or its indices '{}' were not compared{}{}",
                              one.selection.scores, one.selection.indices,
                              one.missing.empty() ? "" : ": ", one.missing));
}

std::string first_of(const CompareResult& result, TensorState state) {
  for (const ComparedTensor& tensor : result.tensors)
    if (tensor.plan.state == state)
      return fmt::format("first '{}': {}", tensor.plan.tensor.name, tensor.plan.why);
  return {};
}

void add_coverage(const CompareResult& result, std::vector<Check>& checks) {
  const std::size_t unmapped = result.count(TensorState::kUnmapped);
  if (unmapped > 0)
    checks.push_back(inconclusive_check(
        "coverage",
        fmt::format("{} of {} tensors have no counterpart; {}. Give the record of names (--names), "
                    "or choose tensors that both have (--tensors)",
                    unmapped, result.tensors.size(), first_of(result, TensorState::kUnmapped))));
  const auto lost =
      std::find_if(result.tensors.begin(), result.tensors.end(), [](const ComparedTensor& tensor) {
        return tensor.plan.is_output && tensor.plan.state == TensorState::kNotRecorded;
      });
  if (lost != result.tensors.end())
    checks.push_back(inconclusive_check(
        "coverage", fmt::format("the output '{}' was not recorded", lost->plan.tensor.name)));
}

}  // namespace

void judge_all(CompareResult& result, const CompareSettings& settings) {
  for (ComparedTensor& tensor : result.tensors) {
    if (!tensor.figures) continue;
    judge(*tensor.figures, tensor.plan.tensor.name, settings_for(tensor.plan, settings));
    for (const int s : tensor.plan.behind) {
      const ComparedSelection& selection = result.selections[static_cast<std::size_t>(s)];
      if (unaligned(*tensor.figures, selection)) {
        leave_open(*tensor.figures, selection);
        break;
      }
    }
  }
  for (ComparedSelection& selection : result.selections)
    selection.check = judge_selection(result, selection);
}

std::vector<std::string> order_notes(const CompareResult& result) {
  // A cosine that differs in the third place is one that a reader would ask about.
  constexpr double kWorthSaying = 1e-3;
  std::vector<std::string> notes;
  for (const ComparedSelection& one : result.selections)
    if (one.agreement && one.agreement->disorder > one.check.limit.value)
      notes.push_back(fmt::format(
          "what {} chose is a set; the order differs by more than ties: consumers that read row 0 "
          "see another detection",
          one.selection.label));
  for (const ComparedTensor& tensor : result.tensors) {
    if (!tensor.figures || !tensor.figures->unmatched_cosine) continue;
    const double matched = tensor.figures->error.cosine.value_or(0);
    if (*tensor.figures->unmatched_cosine > matched - kWorthSaying) continue;
    notes.push_back(
        fmt::format("row by row '{}' would have a cosine of {:.4f}; with the rows that the "
                    "candidate chose it is "
                    "{:.6f}: a selection orders them otherwise",
                    tensor.plan.tensor.name, *tensor.figures->unmatched_cosine, matched));
  }
  return notes;
}

std::vector<Check> compare_checks(const CompareResult& result) {
  std::vector<Check> checks;
  std::size_t compared = 0, beyond = 0, broken = 0, unknown = 0;
  const ComparedTensor* first_broken = nullptr;
  const ComparedTensor* first_unknown = nullptr;
  for (const ComparedTensor& tensor : result.tensors) {
    if (!tensor.figures) continue;
    ++compared;
    const TensorComparison& figures = *tensor.figures;
    if (figures.error.broken > 0 && broken++ == 0) first_broken = &tensor;
    if (figures.check.verdict == Verdict::kFail) ++beyond;
    if (figures.check.verdict == Verdict::kInconclusive && unknown++ == 0) first_unknown = &tensor;
  }
  std::string note;
  if (first_broken != nullptr)
    note =
        fmt::format("first in '{}' of {}", first_broken->plan.tensor.name, first_broken->plan.node);
  checks.push_back(make_check("tensors with Inf or NaN where the reference is finite",
                              static_cast<double>(broken), Comparison::kAtMost,
                              {0, "no element may overflow"}, note));
  note.clear();
  if (const ComparedTensor* first = result.first_beyond())
    note = fmt::format("first '{}' of {}", first->plan.tensor.name, first->plan.node);
  const std::size_t judged = compared - unknown;
  if (judged > 0 || compared == 0)
    checks.push_back(make_check(
        "tensors beyond their limit", static_cast<double>(beyond), Comparison::kAtMost,
        {0, fmt::format("of {}, each against {:g} x its own noise floor", judged, result.factor)},
        note));
  if (unknown > 0)
    checks.push_back(inconclusive_check(
        "tensors that could not be judged",
        fmt::format("{}; first '{}': {}", unknown, first_unknown->plan.tensor.name,
                    first_unknown->figures->check.note)));
  for (const ComparedSelection& selection : result.selections) {
    const bool used = std::any_of(
        result.tensors.begin(), result.tensors.end(), [&](const ComparedTensor& tensor) {
          const auto at = static_cast<int>(&selection - result.selections.data());
          return tensor.plan.behind.contains(at);
        });
    if (used) checks.push_back(selection.check);
  }
  for (const ComparedTensor& tensor : result.tensors)
    if (tensor.figures)
      checks.insert(checks.end(), tensor.figures->gates.begin(), tensor.figures->gates.end());
  add_coverage(result, checks);
  if (result.random_inputs)
    checks.push_back(inconclusive_check(
        "inputs", "random values, not images: give --images DIR or --inputs FILE.npz"));
  return checks;
}

std::size_t CompareResult::count(TensorState state) const {
  return static_cast<std::size_t>(
      std::count_if(tensors.begin(), tensors.end(),
                    [&](const ComparedTensor& one) { return one.plan.state == state; }));
}

const ComparedTensor* CompareResult::first_beyond() const {
  for (const ComparedTensor& tensor : tensors)
    if (tensor.figures && tensor.figures->check.verdict == Verdict::kFail) return &tensor;
  return nullptr;
}

std::vector<const ComparedTensor*> CompareResult::worst() const {
  std::vector<const ComparedTensor*> out;
  for (const ComparedTensor& tensor : tensors)
    if (tensor.figures) out.push_back(&tensor);
  // A ratio that is not known, NaN, stands with the infinite ones: the sort needs an order.
  const auto ratio = [](const ComparedTensor* one) {
    const double value = one->figures->ratio;
    return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const auto* a, const auto* b) { return ratio(a) > ratio(b); });
  return out;
}

std::string coverage(const CompareResult& result) {
  std::string out = fmt::format("compared {} of {} tensors", result.count(TensorState::kCompared),
                                result.tensors.size());
  if (const auto fused = result.count(TensorState::kFused))
    out += fmt::format(", {} fused away", fused);
  if (const auto n = result.count(TensorState::kNotRecorded))
    out += fmt::format(", {} not recorded", n);
  return out + fmt::format(", {} unmapped", result.count(TensorState::kUnmapped));
}

}  // namespace tenonnx
