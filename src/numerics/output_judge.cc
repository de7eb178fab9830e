// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/output_judge.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "flow/noise_path.h"
#include "metrics/tensor_error.h"
#include "model/graph.h"
#include "ort/capture.h"
#include "pipeline/decode.h"

namespace tenonnx {
namespace {

// All detections, whatever they score: gates choose.
constexpr float kAll = 0;

std::string text_of(const Check& check) {
  return fmt::format("{} {:.4g} {} {:.4g}", check.name, check.value, to_string(check.comparison),
                     check.limit.value);
}

}  // namespace

Result<OutputJudge> OutputJudge::make(const CompareSetup& setup, const LoadOptions& load,
                                      const Progress& progress) {
  OutputJudge out;
  out.contract_ = setup.contract;
  out.factor_ = setup.settings.factor;
  LoadOptions exact = load;
  exact.optimization = Optimization::kDisabled;
  std::vector<std::string> names;
  // An input or a constant that is given out is nobody's error.
  const GraphIndex index(setup.reference.proto().graph());
  for (const TensorInfo& info : setup.reference.outputs())
    if (const Value* value = index.find(info.name); value != nullptr && value->producer >= 0)
      names.push_back(info.name);
  if (names.empty())
    return InvalidArgument("no node makes an output of the model: there is nothing to locate");
  TENONNX_ASSIGN_OR_RETURN(const auto graph,
                           load_with_outputs(*setup.ref, setup.reference, names, exact));
  out.has_task_ = setup.contract_is_declared && !setup.inputs.is_random();
  for (std::size_t n = 0; n < setup.inputs.size(); ++n) {
    if (progress)
      progress("reference", static_cast<std::int64_t>(n),
               static_cast<std::int64_t>(setup.inputs.size()));
    TENONNX_ASSIGN_OR_RETURN(ReferenceInput input, setup.inputs.load(n));
    TENONNX_RETURN_IF_ERROR(graph->select_case(input.name, n));
    TENONNX_ASSIGN_OR_RETURN(TensorMap made, graph->run(inputs_of(*graph, input.tensors)));
    out.has_task_ &= input.width > 0;
    out.inputs_.push_back(std::move(input));
    out.references_.push_back(std::move(made));
  }
  if (out.has_task_) {
    out.gate_ = "gates of a heterogeneous chain";
    for (std::size_t n = 0; n < out.size(); ++n) {
      TENONNX_ASSIGN_OR_RETURN(
          std::vector<Detection> expected,
          decode_detections(out.contract_, out.references_[n], out.inputs_[n].width,
                            out.inputs_[n].height, kAll));
      out.expected_.push_back(std::move(expected));
    }
    return out;
  }
  out.gate_ = fmt::format("{:g} x the noise floor of each output", out.factor_);
  TENONNX_ASSIGN_OR_RETURN(const NoisePaths paths,
                           noise_paths(setup.reference, setup.settings.storage, setup.forms));
  out.floors_.resize(out.size());
  for (const FloorRun& floor : paths.runs) {
    LoadOptions options = load;
    options.optimization = floor.optimization;
    TENONNX_ASSIGN_OR_RETURN(const auto other,
                             load_with_outputs(*floor.executor, setup.reference, names, options));
    for (std::size_t n = 0; n < out.size(); ++n) {
      TENONNX_ASSIGN_OR_RETURN(const TensorMap made,
                               other->run(inputs_of(*other, out.inputs_[n].tensors)));
      for (const auto& [name, tensor] : made) {
        TENONNX_ASSIGN_OR_RETURN(const TensorError error,
                                 compare_tensors(out.references_[n].at(name), tensor));
        Floor& limit = out.floors_[n][name];
        limit.relative_l2 = std::max(limit.relative_l2, error.relative_l2.value_or(0));
        limit.differing = std::max(limit.differing, error.differing);
      }
    }
  }
  return out;
}

double OutputJudge::reference_top_score() const {
  return expected_.empty() || expected_.front().empty() ? 0 : expected_.front().front().score;
}

Status OutputJudge::judge_task(std::size_t position, const TensorMap& outputs, TaskSummary& summary,
                               OutputFigures& figures) const {
  const ReferenceInput& input = inputs_[position];
  auto detected = decode_detections(contract_, outputs, input.width, input.height, kAll);
  if (!detected.ok()) {  // Inf or NaN among them
    figures.passes = false;
    figures.failed.push_back(detected.status().message());
    figures.scores_cosine = 0;
    figures.scores_error = figures.boxes_error = 1;
    return {};
  }
  if (summary.images == 0 && !detected->empty()) figures.top_score = detected->front().score;
  summary.add_image(input.name, expected_[position], *detected);
  return {};
}

Status OutputJudge::judge_tensors(std::size_t position, const TensorMap& outputs,
                                  OutputFigures& figures) const {
  for (const auto& [name, reference] : references_[position]) {
    const auto found = outputs.find(name);
    if (found == outputs.end()) return Internal("a run gave no output '{}'", name);
    const auto error = compare_tensors(reference, found->second);
    if (!error.ok()) {
      figures.passes = false;
      figures.failed.push_back(fmt::format("'{}': {}", name, error.status().message()));
      figures.scores_error = figures.boxes_error = 1;
      continue;
    }
    const Floor floor = floors_[position].contains(name) ? floors_[position].at(name) : Floor();
    const auto fail = [&](const std::string& why, double size) {
      figures.passes = false;
      figures.failed.push_back(fmt::format("'{}': {}", name, why));
      figures.scores_error = std::max(figures.scores_error, size);
      figures.boxes_error = figures.scores_error;
    };
    if (error->broken + error->masked_changed > 0) {
      fail(fmt::format("{} of {} elements are Inf or NaN on one side alone",
                       error->broken + error->masked_changed, error->count),
           1);
      continue;
    }
    if (!error->cosine) {  // integers, or nothing that is finite
      const double limit = factor_ * static_cast<double>(floor.differing);
      if (static_cast<double>(error->differing) > limit)
        fail(fmt::format("{} of {} elements differ, where rounding explains {:g}", error->differing,
                         error->count, limit),
             static_cast<double>(error->differing) / static_cast<double>(error->count));
      continue;
    }
    const double value = std::min(error->relative_l2.value_or(0), 1e30);
    if (value > factor_ * floor.relative_l2) {
      fail(fmt::format("relative L2 {:.3g} > {:.3g}", value, factor_ * floor.relative_l2), value);
      continue;
    }
    figures.scores_error = std::max(figures.scores_error, value);
    figures.boxes_error = figures.scores_error;
  }
  return {};
}

Result<OutputFigures> OutputJudge::judge(const std::vector<std::size_t>& positions,
                                         const std::vector<TensorMap>& outputs) const {
  OutputFigures figures;
  TaskSummary summary;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    ++figures.inputs;
    if (has_task_)
      TENONNX_RETURN_IF_ERROR(judge_task(positions[i], outputs[i], summary, figures));
    else
      TENONNX_RETURN_IF_ERROR(judge_tensors(positions[i], outputs[i], figures));
  }
  if (!has_task_ || summary.images == 0) return figures;
  if (!std::isnan(summary.min_scores_cosine)) {
    figures.scores_cosine = std::min(figures.scores_cosine, summary.min_scores_cosine);
    figures.scores_error = std::max(figures.scores_error, 1 - summary.min_scores_cosine);
  }
  figures.matched = summary.matched;
  figures.expected = summary.matched + summary.unmatched_reference;
  if (figures.expected > 0)
    figures.boxes_error =
        std::max(figures.boxes_error, 1 - summary.sum_iou / static_cast<double>(figures.expected));
  // Whether the sample is large enough for a proof does not matter to a counter-example.
  for (const Check& check : task_checks(summary, TaskGates::heterogeneous())) {
    if (check.verdict != Verdict::kFail) continue;
    figures.passes = false;
    figures.failed.push_back(text_of(check));
  }
  return figures;
}

}  // namespace tenonnx
