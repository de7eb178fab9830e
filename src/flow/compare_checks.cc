// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status.h"
#include "base/wording.h"
#include "flow/compare_windows.h"

namespace tenonnx {
namespace {

bool same_rows(const ComparedSelection& selection) {
  return selection.agreement && selection.agreement->invalid == 0 &&
         selection.agreement->chosen_by_candidate == selection.agreement->chosen &&
         selection.agreement->same_position == selection.agreement->chosen;
}

// Whether the figures behind a selection are those of rows that may be other detections.
bool unaligned(const TensorComparison& figures, const ComparedSelection& selection) {
  if (same_rows(selection)) return false;
  // Inf or NaN in a tensor that has none anywhere is wrong in whatever order.
  const NonFiniteCount& ours = figures.error.reference;
  if (figures.error.broken > 0 && ours.inf + ours.nan == 0) return false;
  if (!selection.forced) return true;
  // Forced rows whose choice was not judged may differ for its sake.
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

// How far a score (or a box) may be off: as far as it is, and no further than its tensor's limit. A
// selection that is right by the candidate's own scores then passes, whatever else one may think of
// these.
Limit limit_of(const CompareResult& result, const std::string& name, std::string_view what) {
  const ComparedTensor* scores = find(result, name);
  if (scores == nullptr || !scores->figures)  // the model's own input: both sides have the same
    return {0, fmt::format("0: the {} are an input of the model", what)};
  const TensorComparison& figures = *scores->figures;
  const NoiseFloor& floor =
      figures.storage.max_abs > figures.path.max_abs ? figures.storage : figures.path;
  Limit limit = limit_from_floor(floor, FloorFigure::kMaxAbs, result.factor);
  if (figures.error.max_abs > limit.value) return limit;
  return {figures.error.max_abs, fmt::format("the largest error that the {} have", what)};
}

Check judge_suppression(const CompareResult& result, const ComparedSelection& one) {
  const SelectionAgreement& agreement = *one.agreement;
  // Sets that differ are a tie or an error, by how far what they were chosen by may be off.
  if (agreement.invalid == 0 && (agreement.margin > 0 || agreement.box_margin > 0))
    for (const std::string& name : {one.selection.scores, one.selection.boxes}) {
      const ComparedTensor* tensor = find(result, name);
      const bool known = tensor == nullptr || (tensor->figures && tensor->figures->check.verdict !=
                                                                      Verdict::kInconclusive);
      if (!known)
        return inconclusive_check(
            fmt::format("set of {}", one.selection.label),
            fmt::format("{} chosen, {} by the candidate: a tie or an error, by how far '{}' may be "
                        "off, which was not compared ({})",
                        agreement.chosen, agreement.chosen_by_candidate, name,
                        tensor->figures ? tensor->figures->check.note : tensor->plan.why));
    }
  return suppression_check(one.selection.label, agreement,
                           limit_of(result, one.selection.scores, "scores"),
                           limit_of(result, one.selection.boxes, "boxes"));
}

Check judge_selection(const CompareResult& result, const ComparedSelection& one) {
  if (one.agreement && one.selection.suppression) return judge_suppression(result, one);
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
    return selection_check(one.selection.label, *one.agreement,
                           limit_of(result, one.selection.scores, "scores"));
  return inconclusive_check(
      name, one.selection.scores.empty()
                ? "the limits of this NonMaxSuppression are no constants, so that it is not known "
                  "what it was to choose"
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

// Neither compared nor fused away nor unmapped: rows behind a selection that both sides have in
// another number, and that could not be brought together.
void add_without_figures(const CompareResult& result, std::vector<Check>& checks) {
  std::size_t count = 0;
  const ComparedTensor* first = nullptr;
  for (const ComparedTensor& tensor : result.tensors) {
    if (tensor.figures || tensor.plan.state != TensorState::kCompared) continue;
    if (tensor.plan.selected_by >= 0) continue;  // judged as a set
    if (count++ == 0) first = &tensor;
  }
  if (first == nullptr) return;
  std::string why = "no figures";
  for (const int s : first->plan.behind) {
    const ComparedSelection& selection = result.selections[static_cast<std::size_t>(s)];
    if (selection.forced) continue;
    why = fmt::format("another number of rows behind {}: {}", selection.selection.label,
                      selection.missing);
    break;
  }
  if (first->plan.behind.empty()) why = "the candidate's has another shape";
  checks.push_back(inconclusive_check(
      first->plan.behind.empty() ? "tensors of another shape"
                                 : "tensors whose rows could not be brought together",
      fmt::format("{}; first '{}': {}", count, first->plan.tensor.name, why)));
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

std::string floor_note(const CompareResult& result) {
  const std::size_t same = result.at_floor(), all = result.differing();
  // Some may be the same by chance: one value, or an error of the storage alone.
  if (2 * same <= all) return {};
  return fmt::format(
      "in {} of the {} tensors that differ the error is the noise floor itself: '{}' computes as "
      "the floor does (every value rounded to {}{}), so that a ratio of 1 is no measurement and "
      "says "
      "nothing of how far rounding goes; the column rel. L2 does. What this comparison finds is "
      "what the device does beyond rounding: overflow, saturation, other kernels",
      same, all, result.on, to_string(result.storage),
      result.forms_of.empty() ? "" : ", operators in the forms that " + result.forms_of + " gives");
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
  add_without_figures(result, checks);
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

std::size_t CompareResult::at_floor() const {
  return static_cast<std::size_t>(std::count_if(
      tensors.begin(), tensors.end(),
      [](const ComparedTensor& one) { return one.figures && is_floor_itself(*one.figures); }));
}

std::size_t CompareResult::differing() const {
  return static_cast<std::size_t>(
      std::count_if(tensors.begin(), tensors.end(), [](const ComparedTensor& one) {
        return one.figures && one.figures->error.relative_l2 && one.figures->error.differing > 0;
      }));
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
  const auto error = [](const ComparedTensor* one) {
    return one->figures->error.relative_l2.value_or(0);
  };
  std::stable_sort(out.begin(), out.end(), [&](const auto* a, const auto* b) {
    return ratio(a) != ratio(b) ? ratio(a) > ratio(b) : error(a) > error(b);
  });
  return out;
}

std::string coverage(const CompareResult& result) {
  std::string out = fmt::format("compared {} of {}", result.count(TensorState::kCompared),
                                counted(result.tensors.size(), "tensor"));
  if (const auto fused = result.count(TensorState::kFused))
    out += fmt::format(", {} fused away", fused);
  if (const auto n = result.count(TensorState::kNotRecorded))
    out += fmt::format(", {} not recorded", n);
  return out + fmt::format(", {} unmapped", result.count(TensorState::kUnmapped));
}

}  // namespace tenonnx
