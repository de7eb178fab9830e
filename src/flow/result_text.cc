// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/result_text.h"

#include <algorithm>

#include "base/status.h"
#include "base/wording.h"

namespace tenonnx {

std::string aligned(const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i >= widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], screen_width(row[i]));
    }
  // The last column goes on below itself where the line ends, unless that is a strip.
  constexpr std::size_t kLeastColumn = 24;
  std::size_t last = indent.size();
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) last += widths[i] + 2;
  const bool wraps = last + kLeastColumn <= kScreenColumns;
  std::string out;
  for (const auto& row : rows) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool goes_on = wraps && i > 0 && i + 1 == widths.size();
      line += goes_on ? in_column(row[i], last) : row[i];
      if (i + 1 < row.size()) line.append(widths[i] - screen_width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string checks_table(std::span<const Check> checks) {
  std::vector<std::vector<std::string>> rows = {{"check", "value", "limit", "verdict", ""}};
  std::vector<std::string> origins;  // each once, below the table: most checks share one
  std::string notes;
  for (const Check& check : checks) {
    const bool measured = check.value == check.value;
    const bool passed = check.verdict == Verdict::kPass;
    std::string mark;
    if (!check.limit.origin.empty() && check.limit.origin != "none") {
      auto found = std::find(origins.begin(), origins.end(), check.limit.origin);
      if (found == origins.end()) found = origins.insert(origins.end(), check.limit.origin);
      mark = fmt::format("[{}]", found - origins.begin() + 1);
    }
    rows.push_back(
        {check.name, measured ? fmt::format("{:.6g}", check.value) : "-",
         measured ? fmt::format("{} {:.4g}", to_string(check.comparison), check.limit.value) : "",
         std::string(to_string(check.verdict)), mark});
    if (!passed && !check.note.empty())
      notes += fmt::format("  {}: {}: {}\n", to_string(check.verdict), check.name, check.note);
  }
  // What a tensor's name may take of a line: the other columns come first.
  std::size_t others = 0;
  for (std::size_t column = 1; column < rows[0].size(); ++column) {
    std::size_t width = 0;
    for (const auto& row : rows) width = std::max(width, screen_width(row[column]));
    others += width + 2;
  }
  constexpr std::size_t kIndent = 2, kLeastName = 24;
  const std::size_t room =
      std::max(kLeastName, kScreenColumns - std::min(kScreenColumns, others + kIndent));
  for (auto& row : rows) row[0] = shortened(row[0], room);
  std::string out = aligned(rows, "  ");
  for (std::size_t i = 0; i < origins.size(); ++i)
    out += fmt::format("  [{}] {}\n", i + 1, origins[i]);
  if (!notes.empty()) out += "\n" + notes;
  return out;
}

std::string findings_text(const Proof& proof) {
  // What a screen holds; summary/task/findings of the manifest has up to 20.
  constexpr std::size_t kListed = 5;
  const auto& findings = proof.task.findings;
  std::string out;
  for (std::size_t i = 0; i < std::min(findings.size(), kListed); ++i)
    out += fmt::format("  {}\n", findings[i]);
  if (findings.size() > kListed)
    out += fmt::format("  ... and {} more in manifest.json, summary/task/findings\n",
                       findings.size() - kListed);
  return out;
}

std::string task_text(const Proof& proof) {
  std::string out;
  // COCO's -1: nothing to find, so that there is no precision.
  if (proof.precision && proof.precision->reference.ap < 0)
    out += "  mAP is not defined: the labels have no box in these images\n";
  else if (proof.precision)
    out += fmt::format("  mAP {:.3f} whole, {:.3f} package ({})\n", proof.precision->reference.ap,
                       proof.precision->candidate.ap,
                       counted(proof.labelled_images, "labelled image"));
  if (proof.task.images == 0) return out;
  const Coverage covered = coverage(proof.task, proof.classes);
  out += fmt::format("  over {}\n", covered.over);
  for (std::size_t i = 0; i < covered.not_covered.size(); ++i)
    out +=
        fmt::format("  {} {}\n", i == 0 ? "not covered:" : "            ", covered.not_covered[i]);
  return out;
}

Json summary_of(const Proof& proof, const std::string& inputs) {
  Json out = {{"inputs", inputs}};
  out["task"] = to_json(proof.task);
  out["coverage"] = to_json(coverage(proof.task, proof.classes));
  if (proof.precision)
    out["average_precision"] = {{"images", proof.labelled_images},
                                {"whole", to_json(proof.precision->reference)},
                                {"package", to_json(proof.precision->candidate)}};
  Json tensors = Json::object();
  for (const TensorFigures& figures : proof.figures) {
    tensors[figures.name] = to_json(figures.error);
    tensors[figures.name]["boundary"] = figures.boundary;
    if (figures.boundary && figures.selected) tensors[figures.name]["selected"] = true;
  }
  out["tensors"] = std::move(tensors);
  Json placement = Json::array();
  for (const SegmentPlacement& one : proof.placement) {
    Json providers = Json::object();
    for (const auto& [provider, nodes] : one.providers) providers[provider] = nodes;
    placement.push_back({{"segment", one.segment},
                         {"executor", one.executor},
                         {"nodes", std::move(providers)},
                         {"problem", one.problem}});
  }
  out["placement"] = std::move(placement);
  out["fusion_crosses_cut"] = proof.fusion_crosses;
  if (!proof.first_bad_tensor.empty()) out["first_bad_tensor"] = proof.first_bad_tensor;
  if (!proof.diagnosis.empty()) out["diagnosis"] = proof.diagnosis;
  return out;
}

}  // namespace tenonnx
