// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/status.h"
#include "base/wording.h"
#include "flow/result_text.h"
#include "numerics/inject.h"

namespace tenonnx {
namespace {

std::string figure(double value) { return fmt::format("{:.3g}", value); }

std::string conclusion(const InjectResult& result) {
  if (!result.has_task)
    return "no detections were decoded (no contract, or no images): the outputs' errors alone say "
           "what came of it";
  if (const auto dose = result.least_moving())
    return fmt::format(
        "the task moves from dose {:g} on: an error of this kind and size, at this place, is "
        "enough; "
        "that the device has it is another question (tenonnx probe)",
        *dose);
  return "no dose moves the task: that weakens the suspicion of this place and this kind of error, "
         "and says nothing of others";
}

}  // namespace

std::string describe(const InjectResult& result) {
  std::string out =
      wrapped(fmt::format("error '{}' put into '{}'{} of {} on {}, {}", result.error, result.tensor,
                          result.node.empty() ? "" : ", made by " + result.node, result.model,
                          result.ref, result.inputs)) +
      "\n";
  std::vector<std::vector<std::string>> rows = {{"dose", "rel. L2 there"}};
  if (!result.doses.empty())
    for (const auto& [name, value] : result.doses.front().outputs) rows[0].push_back(name);
  if (result.has_task)
    for (const char* name : {"top score", "scores cosine", "min IoU", "lost", "new", "task"})
      rows[0].emplace_back(name);
  for (const InjectedDose& dose : result.doses) {
    std::vector<std::string> row = {fmt::format("{:g}", dose.dose), figure(dose.relative_l2)};
    for (const auto& [name, value] : dose.outputs) row.push_back(figure(value));
    if (result.has_task) {
      row.push_back(fmt::format("{:.3f} ({:.3f})", dose.top_score, dose.reference_top_score));
      row.push_back(fmt::format("{:.4f}", dose.task.min_scores_cosine));
      row.push_back(fmt::format("{:.3f}", dose.task.min_iou));
      row.push_back(fmt::format("{}", dose.task.unmatched_reference));
      row.push_back(fmt::format("{}", dose.task.unmatched_candidate));
      row.emplace_back(dose.moves_task ? "moves" : "holds");
    }
    rows.push_back(std::move(row));
  }
  out += aligned(rows, "  ");
  out += wrapped(conclusion(result)) + "\n";
  for (const std::string& note : result.notes) out += wrapped("note: " + note) + "\n";
  return out;
}

Json to_json(const InjectResult& result) {
  Json doses = Json::array();
  for (const InjectedDose& dose : result.doses) {
    Json outputs = Json::object();
    for (const auto& [name, value] : dose.outputs) outputs[name] = json_number(value);
    Json one = {{"dose", dose.dose},
                {"relative_l2", json_number(dose.relative_l2)},
                {"outputs", std::move(outputs)}};
    if (result.has_task)
      one["task"] = {{"moves", dose.moves_task},
                     {"top_score", dose.top_score},
                     {"reference_top_score", dose.reference_top_score},
                     {"min_scores_cosine", json_number(dose.task.min_scores_cosine)},
                     {"min_iou", json_number(dose.task.min_iou)},
                     {"max_score_difference", json_number(dose.task.max_score_difference)},
                     {"unmatched_reference", dose.task.unmatched_reference},
                     {"unmatched_candidate", dose.task.unmatched_candidate}};
    doses.push_back(std::move(one));
  }
  Json json = {{"schema_version", 1},     {"model", result.model},
               {"sha256", result.sha256}, {"ref", result.ref},
               {"inputs", result.inputs}, {"random_inputs", result.random_inputs},
               {"tensor", result.tensor}, {"node", result.node},
               {"error", result.error},   {"doses", std::move(doses)},
               {"notes", result.notes}};
  if (const auto least = result.least_moving()) json["least_moving_dose"] = *least;
  return json;
}

}  // namespace tenonnx
