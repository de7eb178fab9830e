// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/verify.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "base/npy.h"
#include "base/status.h"
#include "base/wording.h"
#include "contract/contract.h"
#include "device/device.h"
#include "flow/context_segments.h"
#include "flow/deploy.h"
#include "flow/finite_inputs.h"
#include "flow/result_text.h"
#include "flow/run_budget.h"
#include "pipeline/preprocess.h"

namespace tenonnx {
namespace {

using Versions = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kTargetFile = "target file ";

Versions present_versions(const Manifest& manifest, Versions out) {
  const auto target = find_device(manifest.target);
  out.emplace_back(fmt::format("{}{}", kTargetFile, manifest.target),
                   target.ok() ? target->sha256 : std::string());
  return out;
}

std::vector<VersionDifference> differences(const Versions& recorded, const Versions& present) {
  std::map<std::string, std::string> now(present.begin(), present.end());
  std::vector<VersionDifference> out;
  for (const auto& [name, version] : recorded) {
    const auto found = now.find(name);
    const std::string have = found == now.end() ? "" : found->second;
    if (have != version) out.push_back({name, version, have});
    if (found != now.end()) now.erase(found);
  }
  for (const auto& [name, version] : now) out.push_back({name, "", version});
  return out;
}

std::string spell(const VersionDifference& one) {
  const auto or_none = [](const std::string& text) { return text.empty() ? "nothing" : text; };
  const bool no_file = one.name.starts_with(kTargetFile) && one.present.empty();
  return fmt::format("{}: the package was proved with {}, here is {}{}", one.name,
                     or_none(one.recorded), or_none(one.present),
                     no_file ? " (no device file of that name is found; TENONNX_DEVICES names the "
                               "directory of your own)"
                             : "");
}

Status compare_versions(const VerifyOptions& options, const LoadedSegments& segments,
                        VerifyResult& result) {
  result.version_differences =
      differences(result.manifest.versions, present_versions(result.manifest, segments.versions()));
  std::vector<std::string> lines;
  for (const VersionDifference& one : result.version_differences) lines.push_back(spell(one));
  if (lines.empty()) return {};
  if (!options.allow_version_mismatch)
    return FailedPrecondition(
        "package '{}': the versions differ: {}; deploy the model again, or accept that with "
        "--allow-version-mismatch",
        options.package.string(), fmt::join(lines, "; "));
  for (std::string& line : lines) result.notes.push_back("versions differ: " + line);
  return {};
}

// A context of another version does not load: then the versions are the first thing to know.
Status not_loaded(const Manifest& manifest, const Status& status) {
  const auto versions = LoadedSegments::versions_of(manifest.segments);
  if (!versions.ok()) return status;
  std::vector<std::string> lines;
  for (const VersionDifference& one :
       differences(manifest.versions, present_versions(manifest, *versions)))
    lines.push_back(spell(one));
  if (lines.empty()) return status;
  return Status(status.code(), fmt::format("{}; the versions differ: {}", status.message(),
                                           fmt::join(lines, "; ")));
}

std::vector<TensorInfo> graph_inputs(const Manifest& manifest) {
  std::vector<TensorInfo> out;
  const Contract& contract = manifest.contract;
  for (const Segment& segment : manifest.segments)
    for (const TensorInfo& input : segment.inputs) {
      const bool outer =
          input.name == contract.image.name || (contract.size && input.name == contract.size->name);
      const auto same = [&](const TensorInfo& one) { return one.name == input.name; };
      if (outer && std::none_of(out.begin(), out.end(), same)) out.push_back(input);
    }
  return out;
}

// One run on inputs that prove nothing but that the files load and run.
Status run_once(const VerifyOptions& options, const LoadedSegments& segments,
                VerifyResult& result) {
  const Manifest& manifest = result.manifest;
  TensorMap tensors;
  if (!options.tensors.empty()) {
    TENONNX_ASSIGN_OR_RETURN(tensors, read_npz(options.tensors));
    const Status fits = check_inputs(manifest.contract, graph_inputs(manifest), tensors);
    TENONNX_RETURN_IF_ERROR(fits.at(options.tensors.string()));
    for (const auto& [name, tensor] : tensors)
      TENONNX_RETURN_IF_ERROR(check_finite(options.tensors, name, tensor));
  } else {
    const auto source = InputSource::random(graph_inputs(manifest), manifest.contract, 1, 1);
    if (!source.ok()) {  // dynamic dimensions
      result.notes.push_back("not run: " + source.status().message());
      return {};
    }
    TENONNX_ASSIGN_OR_RETURN(ReferenceInput input, source->load(0));
    tensors = std::move(input.tensors);
  }
  const auto ran = segments.run(tensors);
  if (!ran.ok()) return ran.status();
  return {};
}

// The evidence does not tell the order of the size: what the deploy could not prove stays unproved.
Status carry_over_size_order(const Manifest& manifest, Proof& proof) {
  TENONNX_ASSIGN_OR_RETURN(const auto recorded,
                           checks_from_json(JsonReader(manifest.checks, "manifest.json: /checks")));
  for (const Check& check : recorded)
    if (check.name == size_order_check_name(manifest.contract)) proof.checks.push_back(check);
  proof.verdict = overall_verdict(proof.checks);
  return {};
}

// Whether the deploy fused attention: what its graph level compared is not in the package.
bool fused_attention(const Manifest& manifest) {
  const auto passes = manifest.settings.find("passes");
  if (passes == manifest.settings.end() || !passes->is_array()) return false;
  return std::any_of(passes->begin(), passes->end(), [](const Json& pass) {
    return pass.is_object() && pass.contains("name") && pass.at("name") == kFusePass;
  });
}

Status keep_graph_level(const Manifest& manifest, VerifyResult& result) {
  TENONNX_ASSIGN_OR_RETURN(const auto recorded,
                           checks_from_json(JsonReader(manifest.checks, "manifest.json: /checks")));
  std::vector<Check> checks;
  std::copy_if(recorded.begin(), recorded.end(), std::back_inserter(checks), is_graph_level);
  // A record that says nothing, or of another limit than that of the graph level, proves nothing.
  if (checks.empty())
    checks.push_back(inconclusive_check("graph level", "the manifest has no check of it"));
  for (Check& check : checks)
    if (check.name.find("differing elements") != std::string::npos && check.limit.value != 0)
      check = inconclusive_check(check.name, "the manifest has another limit than 0");
  Proof& proof = result.proof;
  proof.checks.insert(proof.checks.begin(), checks.begin(), checks.end());
  proof.verdict = overall_verdict(proof.checks);
  result.notes.push_back(fmt::format(
      "the graph level is the deploy's: it compares the segments before {}, which the "
      "package does not hold",
      any_context(manifest.segments) ? "they were compiled" : "their attention was fused"));
  return {};
}

// On the same inputs the same files give the same figures, roundings apart. A tenth of the way to
// the limit is more than roundings, and no failure yet.
Status compare_figures(const Manifest& manifest, const Proof& proof,
                       std::vector<std::string>& notes) {
  constexpr double kShare = 0.1, kPrecision = 0.005;
  if (inputs_sha256(proof.input_hashes) != manifest.inputs_sha256) return {};
  TENONNX_ASSIGN_OR_RETURN(const auto recorded,
                           checks_from_json(JsonReader(manifest.checks, "manifest.json: /checks")));
  for (const Check& now : proof.checks)
    for (const Check& then : recorded) {
      if (then.name != now.name || then.limit.value != now.limit.value) continue;
      const double moved = std::abs(now.value - then.value);
      if (!(moved > kShare * std::abs(then.limit.value - then.value))) continue;
      notes.push_back(fmt::format(
          "'{}' is {:.6g}, at the deploy it was {:.6g} on the same inputs: what runs here is not "
          "quite what was proved there",
          now.name, now.value, then.value));
    }
  const Json::json_pointer ap("/average_precision/package/ap");
  if (!proof.precision || !manifest.summary.contains(ap) || !manifest.summary[ap].is_number())
    return {};
  const double now = proof.precision->candidate.ap, then = manifest.summary[ap];
  if (std::abs(now - then) > kPrecision)
    notes.push_back(
        fmt::format("mAP of the package is {:.3f}, at the deploy it was {:.3f} on the "
                    "same inputs: other labels or classes, or another package",
                    now, then));
  return {};
}

// Both sides are prepared and decoded by the package's contract, so that no run finds an error in
// it: it must be the one beside the model, where the deploy took that.
Status check_own_contract(const std::filesystem::path& model, const Manifest& manifest) {
  const auto path = find_contract(model);
  const auto origin = manifest.settings.find("contract");
  if (!path || origin == manifest.settings.end() || *origin != path->filename().string()) return {};
  TENONNX_ASSIGN_OR_RETURN(Contract own, read_contract(*path));
  own.cut = manifest.contract.cut;  // the package's, which deploy may have found itself
  std::vector<std::string> fields;
  for (const Json& change : Json::diff(to_json(own), to_json(manifest.contract)))
    fields.push_back(change.at("path").get<std::string>());
  if (fields.empty()) return {};
  return FailedPrecondition(
      "the package's contract is not that of '{}', by which it was deployed: {} differ; deploy the "
      "model again",
      path->string(), fmt::join(fields, ", "));
}

Status run_gates(const VerifyOptions& options, VerifyResult& result) {
  const Manifest& manifest = result.manifest;
  TENONNX_ASSIGN_OR_RETURN(
      const InputSource inputs,
      InputSource::from_images(options.images, manifest.contract, options.max_images));
  ProofRequest request;
  request.package = options.package;
  request.contract = &manifest.contract;
  request.segments = &manifest.segments;
  request.boundaries = manifest.boundaries;
  request.inputs = &inputs;
  request.labels = find_labels(options.labels, inputs.folder());
  request.labels_given = !options.labels.empty();
  request.load = options.load;
  request.progress = options.progress;
  result.inputs = inputs.description();
  Model source;
  Evidence evidence;
  if (!options.model.empty()) {
    TENONNX_ASSIGN_OR_RETURN(source, Model::load(options.model));
    if (source.sha256() != manifest.source_sha256)
      return FailedPrecondition(
          "'{}' has SHA-256 {}, the package was made of '{}' with {}: another model",
          options.model.string(), source.sha256(), manifest.source_model, manifest.source_sha256);
    const auto recorded = manifest.settings.find("source_files");
    if (recorded != manifest.settings.end() && *recorded != source_files(source))
      return FailedPrecondition(
          "the external data of '{}' are not those that the package was made of: recorded {}, here "
          "{}",
          options.model.string(), recorded->dump(), source_files(source).dump());
    TENONNX_RETURN_IF_ERROR(check_own_contract(options.model, manifest));
    request.source = &source;
  } else {
    TENONNX_ASSIGN_OR_RETURN(evidence,
                             read_detections(options.package / "evidence" / "detections.json"));
    request.evidence = &evidence;
  }
  request.graph_level = !fused_attention(manifest);
  RunBudget runs;
  request.budget = &runs;
  TENONNX_ASSIGN_OR_RETURN(result.proof, prove(request));
  const std::vector<Check>& checks = result.proof.checks;
  if (request.source != nullptr && std::none_of(checks.begin(), checks.end(), is_graph_level))
    TENONNX_RETURN_IF_ERROR(keep_graph_level(manifest, result));
  if (request.source == nullptr)
    TENONNX_RETURN_IF_ERROR(carry_over_size_order(manifest, result.proof));
  result.ran_gates = true;
  result.checks = result.proof.checks;
  result.verdict = result.proof.verdict;
  for (const std::string& note : result.proof.notes) result.notes.push_back(note);
  if (runs.recalled() > 0)
    result.notes.push_back(
        fmt::format("{} on the device were answered from the cache, which holds what the same "
                    "files gave for the same inputs; with XDG_CACHE_HOME set to an empty directory "
                    "they run again",
                    counted(runs.recalled(), "run")));
  return compare_figures(manifest, result.proof, result.notes);
}

}  // namespace

Result<VerifyResult> verify(const VerifyOptions& options) {
  VerifyResult result;
  result.package = options.package;
  if (options.progress) options.progress("read", 0, 0);
  TENONNX_ASSIGN_OR_RETURN(result.manifest, read_package(options.package));
  if (!options.model.empty() && options.images.empty())
    return InvalidArgument("--model is compared with on images: give --images DIR too");
  if (options.progress) options.progress("load", 0, 0);
  TENONNX_RETURN_IF_ERROR(
      check_recorded_contexts(options.package, result.manifest.segments, result.manifest.settings));
  {
    const auto segments =
        LoadedSegments::load(options.package, result.manifest.segments, options.load);
    if (!segments.ok()) return not_loaded(result.manifest, segments.status());
    TENONNX_RETURN_IF_ERROR(compare_versions(options, *segments, result));
    const auto inputs = segments->inputs(), outputs = segments->outputs();
    const auto fits = check_contract(result.manifest.contract, inputs, outputs);
    if (!fits.ok())
      return fits.status().at(
          fmt::format("{}: contract", (options.package / "manifest.json").string()));
    TENONNX_RETURN_IF_ERROR(run_once(options, *segments, result));
  }
  if (!options.images.empty()) {
    TENONNX_RETURN_IF_ERROR(run_gates(options, result));
    return result;
  }
  const Result<Verdict> recorded = verdict_from_string(result.manifest.verdict);
  if (!recorded.ok()) return recorded.status();
  result.verdict = *recorded;
  const Json& checks = result.manifest.checks;
  TENONNX_ASSIGN_OR_RETURN(
      result.checks, checks_from_json(JsonReader(checks, options.package.string() + ": checks")));
  result.notes.push_back(
      "the gates were not run again: give --images (and --model for all three levels)");
  return result;
}

Json to_json(const VerifyResult& result) {
  Json versions = Json::array();
  for (const VersionDifference& one : result.version_differences)
    versions.push_back({{"name", one.name}, {"recorded", one.recorded}, {"present", one.present}});
  Json out = {{"schema_version", 1},
              {"package", result.package.string()},
              {"verdict", to_string(result.verdict)},
              {"recorded_verdict", result.manifest.verdict},
              {"ran_gates", result.ran_gates},
              {"version_differences", std::move(versions)},
              {"checks", to_json(std::span<const Check>(result.checks))},
              {"notes", result.notes}};
  if (result.ran_gates) out["summary"] = summary_of(result.proof, result.inputs);
  return out;
}

std::string describe(const VerifyResult& result) {
  const Manifest& manifest = result.manifest;
  std::string out = fmt::format("{}: {}\n\n  {} as the manifest says; segments load and run\n",
                                result.package.string(), to_string(result.verdict),
                                counted(manifest.files.size(), "file"));
  std::vector<std::vector<std::string>> rows;
  for (const Segment& segment : manifest.segments)
    rows.push_back({segment.name, segment.executor, segment.file});
  out += "\n" + aligned(rows, "  ");
  out += fmt::format("\n  {}\n", result.ran_gates ? "gates, run again" : "gates, as recorded");
  out += checks_table(result.checks);
  if (result.ran_gates) out += "\n" + task_text(result.proof);
  if (!result.notes.empty()) out += "\n";
  for (const std::string& note : result.notes) out += fmt::format("  note: {}\n", note);
  return out;
}

}  // namespace tenonnx
