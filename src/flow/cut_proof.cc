// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/cut_proof.h"

#include <algorithm>

#include "base/status.h"
#include "base/wording.h"

namespace tenonnx {

CutProof::CutProof(std::string title, const Contract& contract, Run whole_disabled,
                   Run parts_disabled)
    : title_(std::move(title)),
      contract_(contract),
      whole_disabled_(std::move(whole_disabled)),
      parts_disabled_(std::move(parts_disabled)) {}

void CutProof::Difference::add(const Difference& other) {
  if (elements == 0) first = other.first;
  elements += other.elements;
}

CutProof::Difference CutProof::differing(const TensorMap& a, const TensorMap& b) {
  Difference out;
  for (const auto& [name, tensor] : a) {
    Difference one{0, name};
    const auto other = b.find(name);
    if (other == b.end()) {
      one.elements = tensor.size();
    } else if (const auto compared = compare_identical(tensor, other->second); compared.ok()) {
      one.elements = compared->differing;
    } else {
      one.elements = std::max<std::int64_t>(1, tensor.size());  // another dtype or shape
    }
    if (one.elements > 0) out.add(one);
  }
  return out;
}

bool CutProof::rows_correspond(const std::string& output) const {
  const Outputs& outputs = contract_.outputs;
  if (outputs.kind == OutputKind::kRaw) return true;
  return output != outputs.labels && output != outputs.boxes;
}

Status CutProof::add(const ReferenceInput& input, const Observation& whole,
                     const Observation& parts) {
  ++inputs_;
  const Difference difference = differing(whole.outputs, parts.outputs);
  at_default_.add(difference);
  if (difference.elements == 0) return {};
  return explain(input, whole, parts);
}

Status CutProof::explain(const ReferenceInput& input, const Observation& whole,
                         const Observation& parts) {
  ++explained_inputs_;
  TENONNX_ASSIGN_OR_RETURN(const Observation whole_disabled, whole_disabled_(input));
  TENONNX_ASSIGN_OR_RETURN(const Observation parts_disabled, parts_disabled_(input));
  at_disabled_.add(differing(whole_disabled.outputs, parts_disabled.outputs));
  for (const auto& [name, tensor] : whole.outputs) {
    const auto cut = parts.outputs.find(name);
    const auto plain = whole_disabled.outputs.find(name);
    if (!rows_correspond(name) || cut == parts.outputs.end() ||
        plain == whole_disabled.outputs.end())
      continue;
    auto floor = measured_noise_floor(
        tensor, plain->second,
        fmt::format("'{}' of the whole model at two optimisation levels", name));
    auto error = compare_tensors(tensor, cut->second);
    if (!floor.ok() || !error.ok()) continue;  // integers, or another shape: counted as differing
    const auto [entry, first] = levels_.try_emplace(name);
    Level& level = entry->second;
    level.floor = first ? *floor : join_worst(level.floor, *floor);
    if (error->max_abs >= level.max_abs) {
      level.max_abs = error->max_abs;
      level.input = input.name;
    }
  }
  summary_.add_image(input.name, whole.detections, parts.detections);
  return {};
}

std::vector<Check> CutProof::checks() const {
  const std::string over = fmt::format("over {}", counted(inputs_, "input"));
  if (inputs_ == 0) return {inconclusive_check(title_ + ": differing elements", "no input ran")};
  if (at_default_.elements == 0)
    return {make_check(title_ + ": differing elements", 0, Comparison::kAtMost,
                       {0, "identical element by element at the default optimisation level"},
                       over)};
  std::vector<Check> out = {make_check(
      title_ + ": differing elements, optimisation disabled",
      static_cast<double>(at_disabled_.elements), Comparison::kAtMost,
      {0, "identical element by element"},
      at_disabled_.elements == 0
          ? fmt::format(
                "a fusion crosses the cut: at the default level {}, first in '{}', in {} of {}",
                counted(at_default_.elements, "element differs", "elements differ"),
                at_default_.first, explained_inputs_, counted(inputs_, "input"))
          : fmt::format("first in '{}'", at_disabled_.first))};
  if (at_disabled_.elements > 0) return out;  // the cut is wrong; nothing else says more
  for (const auto& [name, level] : levels_)
    out.push_back(make_check(fmt::format("{}: {}: max abs error, default level", title_, name),
                             level.max_abs, Comparison::kAtMost,
                             limit_from_floor(level.floor, FloorFigure::kMaxAbs, kFusionFactor),
                             fmt::format("largest in '{}'", level.input)));
  if (levels_.empty())
    out.push_back(inconclusive_check(title_ + ": default level",
                                     "no output whose elements correspond by position"));
  // Boxes and labels are compared as sets.
  TaskGates gates = TaskGates::cpu_reexport();
  gates.min_images = 0;
  gates.min_matched = 0;
  for (Check& check : task_checks(summary_, gates)) {
    check.name = fmt::format("{}: {}, default level", title_, check.name);
    out.push_back(std::move(check));
  }
  return out;
}

Verdict CutProof::verdict() const { return overall_verdict(checks()); }

}  // namespace tenonnx
