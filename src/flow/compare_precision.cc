// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/compare_precision.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "base/wording.h"
#include "flow/segments.h"
#include "metrics/named_gates.h"
#include "metrics/task_gates.h"

namespace tenonnx {
namespace {

Result<std::unique_ptr<LoadedGraph>> load(const PrecisionSide& side, const LoadOptions& options) {
  auto graph = side.executor->load(*side.model, options);
  if (!graph.ok())
    return graph.status().at(fmt::format("the {} on '{}'", side.title, side.executor->address()));
  return graph;
}

std::string where_of(const PrecisionSide& side, const ReferenceInput& input) {
  return fmt::format("average precision of the {} on '{}', input '{}'", side.title,
                     side.executor->address(), input.name);
}

// The outputs under the contract's names, not decoded yet.
Result<Observation> observe(const PrecisionSide& side, LoadedGraph& graph,
                            const ReferenceInput& input, std::size_t position) {
  const std::string where = where_of(side, input);
  TENONNX_RETURN_IF_ERROR(graph.select_case(input.name, position).at(where));
  auto ran = run_whole(graph, input.tensors);
  if (!ran.ok()) return ran.status().at(where);
  Observation observation = std::move(*ran);
  for (const auto& [name, theirs] : side.renamed) {
    auto found = observation.outputs.extract(theirs);
    if (found.empty()) continue;
    found.key() = name;
    observation.outputs.insert(std::move(found));
  }
  return observation;
}

Check judged(const ComparedPrecision& precision) {
  const double reference = precision.figures.reference.ap;
  const double candidate = precision.figures.candidate.ap;
  Check check = map_gate(reference, candidate);
  if (reference < 0 || candidate < 0)  // both look at the same annotations
    return inconclusive_check(check.name,
                              fmt::format("no object is annotated in the {} that '{}' names",
                                          counted(precision.images, "image"), precision.labels));
  check.note += ", over " + counted(precision.images, "labelled image");
  const std::int64_t enough = TaskGates::heterogeneous().min_images;
  if (check.verdict == Verdict::kPass && std::cmp_less(precision.images, enough)) {
    check.verdict = Verdict::kInconclusive;
    check.note += fmt::format("; at least {} are needed", enough);
  }
  return check;
}

}  // namespace

Result<ComparedPrecision> compare_precision(const PrecisionRequest& request) {
  ComparedPrecision out;
  out.labels = request.labels.filename().string();
  if (request.contract->classes.empty())
    return InvalidArgument(
        "the gate 'map' matches the model's classes with the categories of '{}' by name, and the "
        "contract names no classes: add \"classes\" to it (docs/reference/contract.md)",
        request.labels.string());
  TENONNX_ASSIGN_OR_RETURN(LabelledRun labelled,
                           LabelledRun::create(request.labels, *request.contract));
  const auto& files = request.images->files();
  if (std::none_of(files.begin(), files.end(),
                   [&](const auto& file) { return labelled.knows(file.filename().string()); }))
    return InvalidArgument(
        "the labels '{}' name none of the {} (first '{}'); images are found by their file name: "
        "give the labels of these images (--labels FILE)",
        request.labels.string(), request.images->description(),
        files.empty() ? "" : files.front().filename().string());
  TENONNX_ASSIGN_OR_RETURN(const auto reference, load(request.reference, request.load));
  TENONNX_ASSIGN_OR_RETURN(const auto candidate, load(request.candidate, request.load));
  std::size_t unlabelled = 0;
  std::string first_unlabelled;
  const auto total = static_cast<std::int64_t>(request.images->size());
  for (std::size_t i = 0; i < request.images->size(); ++i) {
    if (request.progress)
      request.progress("average precision", static_cast<std::int64_t>(i), total);
    const std::string name = files[i].filename().string();
    if (!labelled.knows(name)) {
      if (unlabelled++ == 0) first_unlabelled = name;
      continue;
    }
    TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, request.images->load(i));
    TENONNX_ASSIGN_OR_RETURN(Observation ours, observe(request.reference, *reference, input, i));
    TENONNX_RETURN_IF_ERROR(
        decode(*request.contract, input, ours).at(where_of(request.reference, input)));
    TENONNX_ASSIGN_OR_RETURN(Observation theirs, observe(request.candidate, *candidate, input, i));
    const Status decoded = decode(*request.contract, input, theirs);
    if (!decoded.ok()) {
      theirs.detections.clear();
      out.notes.push_back(
          fmt::format("the candidate's outputs for '{}' do not decode and count as "
                      "no detections: {}",
                      input.name, decoded.message()));
    }
    labelled.add(name, ours.detections, theirs.detections);
  }
  if (unlabelled > 0)
    out.notes.push_back(fmt::format("the labels do not name {} of {} images, first '{}'",
                                    unlabelled, total, first_unlabelled));
  if (request.progress) request.progress("average precision", total, total);
  TENONNX_ASSIGN_OR_RETURN(out.figures, labelled.figures());
  out.images = labelled.images();
  out.check = judged(out);
  return out;
}

}  // namespace tenonnx
