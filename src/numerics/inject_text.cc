// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "base/wording.h"
#include "flow/result_text.h"
#include "numerics/inject.h"

namespace tenonnx {
namespace {

std::string figure(double value) { return fmt::format("{:.3g}", value); }

// Nothing of what a row says is measured where no image could be judged, nor is an IoU without a
// matched box.
std::vector<std::string> task_columns(const InjectedDose& dose) {
  const TaskSummary& task = dose.task;
  const std::string none = "-";
  const bool judged = task.images > 0;
  return {fmt::format("{} ({:.3f})", dose.top_score ? fmt::format("{:.3f}", *dose.top_score) : none,
                      dose.reference_top_score),
          std::isnan(task.min_scores_cosine) ? none : fmt::format("{:.4f}", task.min_scores_cosine),
          task.matched > 0 ? fmt::format("{:.3f}", task.min_iou) : none,
          judged ? fmt::format("{}", task.unmatched_reference) : none,
          judged ? fmt::format("{}", task.unmatched_candidate) : none,
          dose.moves_task ? "moves" : "holds"};
}

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
    if (result.has_task)
      for (std::string& column : task_columns(dose)) row.push_back(std::move(column));
    // Doses that make no difference are one row: "0.25 to 4".
    const std::string& label = rows.back()[0];
    if (std::equal(row.begin() + 1, row.end(), rows.back().begin() + 1, rows.back().end()))
      row[0] = fmt::format("{} to {}", label.substr(0, label.find(' ')), row[0]);
    if (row[0].find(' ') != std::string::npos)
      rows.back() = std::move(row);
    else
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
    const TaskSummary& task = dose.task;
    const bool judged = task.images > 0;
    if (result.has_task)
      one["task"] = {{"moves", dose.moves_task},
                     {"judged", dose.task.images},
                     {"unjudged", dose.unjudged},
                     {"top_score", dose.top_score ? Json(*dose.top_score) : Json()},
                     {"reference_top_score", dose.reference_top_score},
                     {"min_scores_cosine", judged && !std::isnan(task.min_scores_cosine)
                                               ? json_number(task.min_scores_cosine)
                                               : Json()},
                     {"min_iou", task.matched > 0 ? json_number(task.min_iou) : Json()},
                     {"max_score_difference",
                      task.matched > 0 ? json_number(task.max_score_difference) : Json()},
                     {"unmatched_reference", judged ? Json(task.unmatched_reference) : Json()},
                     {"unmatched_candidate", judged ? Json(task.unmatched_candidate) : Json()}};
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
