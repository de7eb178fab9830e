// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A deploy's result, as JSON and for people.
#include "base/status.h"
#include "flow/deploy.h"
#include "flow/result_text.h"

namespace tenonnx {
namespace {

std::string placement_of(const Proof& proof, const std::string& segment) {
  for (const SegmentPlacement& one : proof.placement) {
    if (one.segment != segment) continue;
    std::vector<std::string> out;
    for (const auto& [provider, nodes] : one.providers)
      out.push_back(fmt::format("{} nodes {}on {}", nodes,
                                one.executor.starts_with("sim:") ? "simulated " : "", provider));
    return fmt::format("{}", fmt::join(out, ", "));
  }
  return "not run";
}

std::uint64_t bytes_of(const Manifest& manifest, const std::string& path) {
  for (const PackagedFile& file : manifest.files)
    if (file.path == path) return file.bytes;
  return 0;
}

}  // namespace

Json to_json(const DeployResult& result) {
  Json boundaries = Json::array();
  for (const BoundaryTensor& boundary : result.boundaries)
    boundaries.push_back({{"name", boundary.name},
                          {"source", boundary.source},
                          {"dtype", to_string(boundary.info.dtype)},
                          {"shape", boundary.info.shape},
                          {"bytes", boundary.bytes}});
  return {{"schema_version", 1},
          {"package", result.package.string()},
          {"verdict", result.manifest.verdict},
          {"boundaries", std::move(boundaries)},
          {"notes", result.notes},
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
  out += fmt::format("\n  {}\n", result.cut_origin);
  rows.clear();
  for (const BoundaryTensor& boundary : result.boundaries)
    rows.push_back(
        {boundary.name,
         fmt::format("{} {}", to_string(boundary.info.dtype), to_string(boundary.info.shape)),
         spell_bytes(boundary.bytes), boundary.source});
  out += aligned(rows, "  ");
  out += "\n" + checks_table(proof.checks);
  if (proof.fusion_crosses && proof.cut_is_right) out += "  a fusion crosses the cut\n";
  if (!proof.cut_is_right) out += "  the cut is wrong: nothing else was tried\n";
  if (!proof.diagnosis.empty()) out += fmt::format("\n  {}\n", proof.diagnosis);
  if (const std::string task = task_text(proof); !task.empty()) out += "\n" + task;
  if (!result.notes.empty()) out += "\n";
  for (const std::string& note : result.notes) out += fmt::format("  note: {}\n", note);
  out += fmt::format("\n  {}\n", result.package.string());
  return out;
}

}  // namespace tenonnx
