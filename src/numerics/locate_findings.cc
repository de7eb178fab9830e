// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/locate_findings.h"

#include <algorithm>

#include "base/status.h"
#include "base/wording.h"
#include "numerics/block_name.h"

namespace tenonnx {
namespace {

// A piece of more nodes is no place: an attention that is written out has up to 60, a norm 10.
constexpr std::size_t kOnePlace = 16;

// "range at Mul '/mlp/Mul' (SwiGLU, '/mlp') and 3 more like it"
std::string headline_of(const LocateResult& result, const GraphIndex& candidate) {
  const Suspect& first = result.suspects.front();
  if (first.kind.kind == FaultKind::kSelection)
    return fmt::format("selection differs, values agree: {} chooses otherwise from the same scores",
                       first.node);
  const int node = first.place();
  const std::string block = node >= 0 ? to_string(block_name(candidate, node)) : "";
  const auto alike =
      std::count_if(result.suspects.begin(), result.suspects.end(), [&](const Suspect& other) {
        return other.kind.kind == first.kind.kind &&
               other.alone_breaks.value_or(true) == first.alone_breaks.value_or(true);
      });
  // Where the graphs have little in common, a node stands for many.
  const std::size_t piece = std::max(first.piece, first.reference_piece);
  return fmt::format("{} at {}{}{}{}", to_string(first.kind.kind),
                     first.culprit_node.empty() ? first.node : first.culprit_node,
                     block.empty() ? "" : " (" + block + ")",
                     piece <= kOnePlace
                         ? ""
                         : fmt::format(", or in one of the {} nodes before it that the other graph "
                                       "has no counterpart of",
                                       piece - 1),
                     alike > 1 ? fmt::format(" and {} more like it", alike - 1) : "");
}

void say_nothing_fails(LocateResult& result, const FindingsContext& context) {
  const bool proves = result.has_task && !result.random_inputs && !context.recorded;
  result.verdict = proves ? Verdict::kPass : Verdict::kInconclusive;
  const bool only_selections =
      std::all_of(result.suspects.begin(), result.suspects.end(),
                  [](const Suspect& one) { return one.kind.kind == FaultKind::kSelection; });
  if (!result.output_order.empty()) {
    result.verdict = Verdict::kInconclusive;
    result.headline = "the outputs stand in another order: " + result.output_order;
  } else if (context.stands_out && !result.suspects.empty() && only_selections) {
    result.headline =
        headline_of(result, *context.candidate) + "; the task does not move on these inputs";
  } else if (context.stands_out && !result.suspects.empty()) {
    result.verdict = Verdict::kInconclusive;
    result.headline = fmt::format("the task does not move on these inputs, and yet: {}",
                                  headline_of(result, *context.candidate));
  } else if (std::any_of(result.selections.begin(), result.selections.end(),
                         [](const auto& one) { return one.differs && one.beyond_ties; })) {
    result.headline =
        "the task does not move; a selection differs by more than rounding of its scores explains, "
        "though no node has an error of its own";
  } else if (std::any_of(result.selections.begin(), result.selections.end(),
                         [](const auto& one) { return one.differs; })) {
    result.headline = "selection differs, values agree; the task does not move";
  } else {
    result.headline = "nothing to locate: the task does not move";
  }
  if (result.random_inputs)
    result.headline += "; random inputs say little: give --images";
  else if (!result.has_task)
    result.headline += "; there are no images and no task: the outputs are within their floors";
  else if (context.recorded)
    result.headline +=
        "; of a recording only what it holds was compared, and no part was run at the reference";
}

void name_rounding(LocateResult& result) {
  for (Suspect& suspect : result.suspects)
    if (suspect.kind.kind != FaultKind::kRange)
      suspect.kind = {FaultKind::kRounding,
                      "its own error is within its floor: the largest of those that are", 0};
}

}  // namespace

void say_what_was_found(LocateResult& result, const FindingsContext& context) {
  if (!result.fails()) return say_nothing_fails(result, context);
  result.verdict = Verdict::kFail;
  if (!context.stands_out) name_rounding(result);
  if (!result.contract.empty())
    result.headline = "the two sides are fed otherwise: " + result.contract.front();
  else if (result.suspects.empty())
    result.headline = "the task fails, and no tensor's own error could be measured";
  else if (!context.stands_out)
    result.headline =
        "no node's own error stands out: rounding alone, grown on its way, fails the gate";
  else
    result.headline = headline_of(result, *context.candidate);
  result.not_shown = {
      "a large accumulated error at a late tensor contains all that came before it; the own error "
      "does not",
      "a ratio of maxima says nothing about an accumulator inside of a node",
      fmt::format("float32 at the interface of '{}' does not mean float32 inside", result.on)};
  if (!result.has_task)
    result.not_shown.push_back("there are no detections: the gate is over the outputs alone");
}

}  // namespace tenonnx
