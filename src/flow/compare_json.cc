// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/status.h"
#include "flow/compare.h"

namespace tenonnx {
namespace {

Json tensor_json(const ComparedTensor& tensor) {
  const PlannedTensor& plan = tensor.plan;
  Json json = {{"name", plan.tensor.name},        {"node", plan.node},
               {"op_type", plan.op_type},         {"dtype", to_string(plan.tensor.info.dtype)},
               {"shape", plan.tensor.info.shape}, {"state", to_string(plan.state)}};
  if (!plan.candidate.empty() && plan.candidate != plan.tensor.name)
    json["candidate"] = plan.candidate;
  if (!plan.why.empty()) json["why"] = plan.why;
  if (plan.is_output) json["output"] = true;
  if (!plan.behind.empty()) json["behind"] = plan.behind;
  if (!tensor.figures) return json;
  json["ratio"] = json_number(tensor.figures->ratio);
  json["check"] = to_json(tensor.figures->check);
  json["figures"] = to_json(*tensor.figures);
  return json;
}

Json selection_json(const ComparedSelection& selection) {
  Json json = {{"node", selection.selection.label},
               {"scores", selection.selection.scores},
               {"indices", selection.selection.indices},
               {"check", to_json(selection.check)}};
  json["agreement"] = selection.agreement ? to_json(*selection.agreement) : Json();
  return json;
}

Json precision_json(const std::optional<ComparedPrecision>& precision) {
  if (!precision) return {};
  return {{"images", precision->images},
          {"labels", precision->labels},
          {"reference", to_json(precision->figures.reference)},
          {"candidate", to_json(precision->figures.candidate)}};
}

}  // namespace

Json to_json(const CompareResult& result) {
  const ComparedTensor* first = result.first_beyond();
  Json json = {
      {"schema_version", 1},
      {"verdict", to_string(result.verdict)},
      {"coverage",
       {{"tensors", result.tensors.size()},
        {"compared", result.count(TensorState::kCompared)},
        {"fused", result.count(TensorState::kFused)},
        {"unmapped", result.count(TensorState::kUnmapped)},
        {"not_recorded", result.count(TensorState::kNotRecorded)},
        {"at_floor", result.at_floor()},
        {"text", coverage(result)}}},
      {"reference",
       {{"model", result.reference},
        {"sha256", result.reference_sha256},
        {"executor", result.ref}}},
      {"candidate",
       {{"model", result.candidate}, {"sha256", result.candidate_sha256}, {"executor", result.on}}},
      {"settings",
       {{"taken", result.taken},
        {"names", result.names},
        {"storage", to_string(result.storage)},
        {"factor", json_number(result.factor)},
        {"windows", result.windows},
        {"recalled", result.recalled}}},
      {"inputs", result.inputs},
      {"checks", to_json(std::span<const Check>(result.checks))},
      {"average_precision", precision_json(result.precision)},
      {"first_beyond", first == nullptr ? Json() : Json(first->plan.tensor.name)},
      {"selections", Json::array()},
      {"tensors", Json::array()},
      {"explanations", result.explanations},
      {"notes", result.notes},
      {"versions", Json::object()}};
  for (const ComparedSelection& selection : result.selections)
    json["selections"].push_back(selection_json(selection));
  for (const ComparedTensor& tensor : result.tensors)
    json["tensors"].push_back(tensor_json(tensor));
  for (const auto& [name, value] : result.versions) json["versions"][name] = value;
  return json;
}

}  // namespace tenonnx
