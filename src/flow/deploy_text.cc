// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A deploy's result, as JSON and for people.
#include <algorithm>

#include "base/status.h"
#include "base/wording.h"
#include "flow/deploy.h"
#include "flow/result_text.h"

namespace tenonnx {
namespace {

std::string placement_of(const Proof& proof, const std::string& segment) {
  for (const SegmentPlacement& one : proof.placement) {
    if (one.segment != segment) continue;
    std::vector<std::string> out;
    for (const auto& [provider, nodes] : one.providers)
      out.push_back(fmt::format("{} {}on {}", counted(nodes, "node"),
                                one.executor.starts_with("sim:") ? "simulated " : "", provider));
    return fmt::format("{}", fmt::join(out, ", "));
  }
  return "not run";
}

std::string indented(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += fmt::format("    {}\n", line);
  return out;
}

std::uint64_t bytes_of(const Manifest& manifest, const std::string& path) {
  for (const PackagedFile& file : manifest.files)
    if (file.path == path) return file.bytes;
  return 0;
}

// Only where a target's segments run on a device.
std::string runs_text(const DeployResult& result) {
  const RunBudget& runs = result.runs;
  if (runs.used() + runs.recalled() == 0 && runs.limit() == 0) return {};
  std::string out = fmt::format("\n  {} on the device", counted(runs.used(), "run"));
  if (runs.recalled() > 0) out += fmt::format(", {} more from the cache", runs.recalled());
  if (runs.limit() > 0) out += fmt::format("; budget {}", runs.limit());
  out += "\n";
  if (result.budget_needed == 0) return out;
  std::string decided;
  for (const TriedCut& one : result.tried)
    if (one.verdict == "FAIL")
      decided += fmt::format("{}FAIL: {}", decided.empty() ? "" : "; ", one.origin);
  return out + fmt::format("  THE BUDGET WAS USED UP\n  decided:   {}\n  undecided: {}{}\n",
                           decided.empty() ? "nothing" : decided, result.cut_origin,
                           result.proof.budget.text.empty() ? std::string()
                                                            : ": " + result.proof.budget.text);
}

// What an engineer would do now.
std::string next_step(const DeployResult& result) {
  const std::string package = result.package.string();
  std::string out = fmt::format("\n  package: {}\n", package);
  const bool cut = !result.boundaries.empty();
  if (result.manifest.verdict == "PASS")
    return out + fmt::format("  next:    tenonnx run {} IMAGES -o out\n", package);
  if (result.budget_needed > 0)
    return out + fmt::format(
                     "  next:    deploy again with --budget {} or more (--force replaces the "
                     "package); what "
                     "the cache holds is not run again\n",
                     result.budget_needed);
  if (result.manifest.verdict == "INCONCLUSIVE")
    return out + "  next:    deploy again with (more) --images: see the checks above\n";
  if (!cut && !result.proof.first_bad_tensor.empty())
    return out +
           fmt::format("  next:    cut before '{}' (--cut), so that what follows runs elsewhere\n",
                       result.proof.first_bad_tensor);
  // On the cpu there is no fault of a device to find.
  for (const Segment& segment : result.manifest.segments)
    if (segment.executor != "cpu" && result.proof.cut_is_right)
      return out + fmt::format(
                       "  next:    tenonnx locate {} --on {} --images DIR says where it begins and "
                       "what to keep on the cpu; "
                       "'run' refuses this package (--force overrides)\n",
                       result.manifest.source_model, segment.executor);
  return out + "  next:    'run' refuses this package (--force overrides); see the checks above\n";
}

}  // namespace

Json to_json(const DeployResult& result) {
  const RunBudget& runs = result.runs;
  return {{"schema_version", 1},
          {"package", result.package.string()},
          {"verdict", result.manifest.verdict},
          {"boundaries", to_json(result.boundaries)},
          {"notes", result.notes},
          {"device_runs",
           {{"used", runs.used()},
            {"recalled", runs.recalled()},
            {"budget", runs.limit()},
            {"used_up", runs.used_up()},
            {"needed", result.budget_needed}}},
          {"manifest", to_json(result.manifest)}};
}

std::string describe(const DeployResult& result) {
  const Manifest& manifest = result.manifest;
  const Proof& proof = result.proof;
  std::string out =
      fmt::format("{} on {}: {}\n\n", manifest.source_model, manifest.target, manifest.verdict);
  std::vector<std::vector<std::string>> rows;
  for (const Segment& segment : manifest.segments)
    rows.push_back({segment.name, segment.executor, placement_of(proof, segment.name),
                    spell_bytes(bytes_of(manifest, segment.file))});
  out += aligned(rows, "  ");
  if (result.contract_guessed)
    out +=
        "\n  THE CONTRACT IS A GUESS: no MODEL.contract.json and no contract.json beside the model."
        "\n  Wrong preprocessing is the same on both sides, so that no check can find it. "
        "Assumed:\n" +
        indented(result.assumed);
  out += fmt::format("\n{}  {}\n", describe(result.tried), result.cut_origin);
  rows.clear();
  constexpr std::size_t kListed = 12;  // a cut has fewer; a list of nodes may have a hundred
  const std::size_t listed = std::min(result.boundaries.size(), kListed);
  for (std::size_t i = 0; i < listed; ++i) {
    const BoundaryTensor& boundary = result.boundaries[i];
    rows.push_back(
        {boundary.name,
         fmt::format("{} {}", to_string(boundary.info.dtype), to_string(boundary.info.shape)),
         spell_bytes(boundary.bytes), boundary.source});
  }
  out += aligned(rows, "  ");
  if (listed < result.boundaries.size())
    out += fmt::format("  and {} more: boundaries in the manifest\n",
                       result.boundaries.size() - listed);
  if (!result.cut_description.empty()) out += fmt::format("  {}\n", result.cut_description);
  if (!result.chosen.empty())
    out += fmt::format("\n  prepared as devices/{}.json asks\n{}", manifest.target,
                       describe(result.chosen));
  out += runs_text(result);
  out += "\n" + checks_table(proof.checks);
  if (proof.fusion_crosses && proof.cut_is_right) out += "  a fusion crosses the cut\n";
  if (!proof.cut_is_right) out += "  the cut is wrong: nothing else was tried\n";
  if (!proof.diagnosis.empty()) out += fmt::format("\n  {}\n", proof.diagnosis);
  if (manifest.verdict != "PASS")
    if (const std::string findings = findings_text(proof); !findings.empty())
      out += "\n" + findings;
  if (const std::string task = task_text(proof); !task.empty()) out += "\n" + task;
  std::string notes;
  for (const std::string& note : result.notes)
    if (!note.starts_with(kGuessed)) notes += fmt::format("  note: {}\n", note);
  if (!notes.empty()) out += "\n" + notes;
  return out + next_step(result);
}

}  // namespace tenonnx
