// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/deploy.h"

#include <algorithm>

#include "adapters/address.h"
#include "base/files.h"
#include "base/status.h"
#include "contract/contract.h"
#include "device/device.h"
#include "flow/result_text.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

Result<Contract> load_contract(const DeployOptions& options, const Model& model,
                               DeployResult& result) {
  Contract contract;
  if (const auto path = find_contract(options.model)) {
    TENONNX_ASSIGN_OR_RETURN(contract, read_contract(*path));
    result.contract_origin = path->filename().string();
  } else {
    std::vector<std::string> assumed;
    TENONNX_ASSIGN_OR_RETURN(contract, guess_contract(model, assumed));
    result.contract_origin = "guessed from the graph";
    result.contract_guessed = true;
    for (const std::string& line : assumed) result.notes.push_back(std::string(kGuessed) + line);
    result.assumed = std::move(assumed);
  }
  const auto notes = check_contract(contract, model);
  if (!notes.ok()) return notes.status().at(result.contract_origin);
  for (const std::string& note : *notes) result.notes.push_back("contract: " + note);
  return contract;
}

// Which cut, and who says so.
Result<std::vector<std::string>> choose_cut(const DeployOptions& options, const Contract& contract,
                                            DeployResult& result) {
  if (!options.cut.empty()) {
    TENONNX_ASSIGN_OR_RETURN(std::vector<std::string> cut, parse_cut(options.cut));
    result.cut_origin = cut.empty() ? "whole graph (--cut none)" : "cut by --cut";
    return cut;
  }
  result.cut_origin =
      contract.cut.empty() ? "whole graph (nothing names a cut)" : "cut by the contract";
  return contract.cut;
}

Status add_segment(const std::string& name, const Model& model, const Device& device,
                   const fs::path& directory, bool keep_metadata, Manifest& manifest) {
  Segment segment;
  segment.name = name;
  segment.file = name + ".onnx";
  TENONNX_ASSIGN_OR_RETURN(segment.executor, device.executor_for(name));
  segment.inputs = model.inputs();
  segment.outputs = model.outputs();
  SaveOptions save;
  save.keep_metadata = keep_metadata;
  TENONNX_RETURN_IF_ERROR(model.save(directory / segment.file, save).at("segment '" + name + "'"));
  manifest.segments.push_back(std::move(segment));
  return {};
}

Result<InputSource> make_inputs(const DeployOptions& options, const Model& model,
                                const Contract& contract) {
  if (options.images.empty())
    return InputSource::random(model.inputs(), contract, options.random_inputs, options.seed);
  return InputSource::from_images(options.images, contract, options.max_images);
}

// Executors that do not exist are a mistake in the target file, not a verdict on the model. One
// that exists and does not start is a failed stage of the package.
Status check_roles(const Device& target) {
  for (const auto& [role, address] : target.roles) {
    const auto made = make_executor(address, AddressOrigin::kFile);
    const StatusCode code = made.status().code();
    const bool exists = made.ok() || code == StatusCode::kFailedPrecondition ||
                        code == StatusCode::kUnsupported || code == StatusCode::kInternal;
    if (!exists)
      return made.status().at(fmt::format(
          "target '{}' ({}): role '{}' names the executor '{}', which does not exist (there are "
          "{})",
          target.name, target.file.string(), role, address, executor_forms()));
  }
  return {};
}

Json settings_of(const DeployOptions& options, const Model& source, const DeployResult& result) {
  Json passes = Json::array();
  for (const PassReport& pass : result.passes)
    passes.push_back({{"name", pass.name},
                      {"applied", pass.outcome.applied},
                      {"skipped", pass.outcome.skipped.size()}});
  const LoadOptions& load = options.load;
  return {{"contract", result.contract_origin},
          {"source_files", source_files(source)},
          {"cut", result.cut_origin},
          {"passes", std::move(passes)},
          {"intra_op_threads", load.intra_op_threads},
          {"inter_op_threads", load.inter_op_threads},
          {"parallel", load.parallel},
          {"spinning", load.spinning},
          {"optimization", to_string(load.optimization)}};
}

std::string executors_of(const std::vector<Segment>& segments) {
  std::vector<std::string> out;
  for (const Segment& segment : segments)
    out.push_back(fmt::format("{} on {}", segment.name, segment.executor));
  return fmt::format("{}", fmt::join(out, ", "));
}

}  // namespace

Json source_files(const Model& source) {
  Json out = Json::object();
  for (const auto& [name, sha256] : source.source_hashes()) out[name] = sha256;
  return out;
}

Result<DeployResult> deploy(const DeployOptions& options) {
  const auto step = [&](std::string_view name) {
    if (options.progress) options.progress(name, 0, 0);
  };
  if (!options.labels.empty() && options.labels != "none" && options.images.empty())
    return InvalidArgument("labels ('{}') need the images that they describe: give --images DIR",
                           options.labels.string());
  DeployResult result;
  Manifest& manifest = result.manifest;
  TENONNX_ASSIGN_OR_RETURN(const Device device, find_device(options.target));
  if (!device.is_target())
    return InvalidArgument(
        "'{}' is a device without roles, not a target: its file says what it computes, not which "
        "segment runs where; name a target, as one of '{}'",
        options.target, fmt::join(target_names(), "', '"));
  TENONNX_RETURN_IF_ERROR(check_roles(device));
  // Before the long part: a package that may not be replaced is said at once.
  TENONNX_ASSIGN_OR_RETURN(
      auto staged, StagedDirectory::create(options.out, options.force, may_replace_package));

  step("load");
  TENONNX_ASSIGN_OR_RETURN(const Model source, Model::load(options.model));
  Model prepared = source.clone();
  step("prepare");
  TENONNX_ASSIGN_OR_RETURN(result.passes, prepare_graph(prepared, options.preparation));
  TENONNX_ASSIGN_OR_RETURN(manifest.contract, load_contract(options, prepared, result));
  TENONNX_ASSIGN_OR_RETURN(const InputSource inputs,
                           make_inputs(options, prepared, manifest.contract));
  result.inputs = inputs.description();

  step("cut");
  TENONNX_ASSIGN_OR_RETURN(const std::vector<std::string> cut,
                           choose_cut(options, manifest.contract, result));
  if (cut.empty()) {
    TENONNX_RETURN_IF_ERROR(
        add_segment("model", prepared, device, staged.path(), options.keep_metadata, manifest));
  } else {
    auto parts = cut_model(prepared, cut);
    if (!parts.ok()) return parts.status().at(result.cut_origin);
    TENONNX_RETURN_IF_ERROR(add_segment("encoder", parts->encoder, device, staged.path(),
                                        options.keep_metadata, manifest));
    TENONNX_RETURN_IF_ERROR(add_segment("decoder", parts->decoder, device, staged.path(),
                                        options.keep_metadata, manifest));
    result.boundaries = parts->boundaries;
    for (const BoundaryTensor& boundary : result.boundaries)
      manifest.boundaries.emplace_back(boundary.name, boundary.source);
  }
  // The package's contract names the cut that the package has.
  manifest.contract.cut.clear();
  for (const BoundaryTensor& boundary : result.boundaries)
    manifest.contract.cut.push_back(boundary.source);

  ProofRequest request;
  request.package = staged.path();
  request.contract = &manifest.contract;
  request.segments = &manifest.segments;
  request.source = &source;
  request.inputs = &inputs;
  request.labels = find_labels(options.labels, inputs.folder());
  request.labels_given = !options.labels.empty();
  request.load = options.load;
  request.progress = options.progress;
  TENONNX_ASSIGN_OR_RETURN(result.proof, prove(request));
  Proof& proof = result.proof;
  // Notes of the contract on what only a run can tell are answered by the run.
  if (proof.cut_is_right && !proof.evidence.empty())
    std::erase_if(result.notes, [](const std::string& note) {
      return note.ends_with("is not known before a run");
    });
  for (const std::string& note : proof.notes) result.notes.push_back(note);
  const auto applied = [](const PassReport& pass) { return pass.outcome.applied > 0; };
  if (!proof.cut_is_right && std::any_of(result.passes.begin(), result.passes.end(), applied))
    result.notes.push_back(
        "passes changed the graph before the cut; deploy with --no-fold-constants to see whether "
        "the "
        "difference is theirs");

  step("write");
  manifest.target = device.name;
  manifest.verdict = to_string(proof.verdict);
  manifest.source_model = options.model.filename().string();
  manifest.source_sha256 = source.sha256();
  manifest.inputs_sha256 = inputs_sha256(proof.input_hashes);
  manifest.versions = proof.versions;
  manifest.versions.emplace_back(fmt::format("target file {}", device.name), device.sha256);
  manifest.settings = settings_of(options, source, result);
  manifest.stages = {{"export", "ok", fmt::format("{} segment files", manifest.segments.size())},
                     {"build", "ok", executors_of(manifest.segments)}};
  for (const StageStatus& stage : proof.stages) manifest.stages.push_back(stage);
  manifest.checks = to_json(std::span<const Check>(proof.checks));
  manifest.summary = summary_of(proof, result.inputs);
  TENONNX_RETURN_IF_ERROR(write_evidence(staged.path() / "evidence", proof.verdict, proof.checks,
                                         proof.images, proof.evidence));
  TENONNX_RETURN_IF_ERROR(write_package(staged.path(), manifest));
  TENONNX_RETURN_IF_ERROR(staged.publish());
  result.package = options.out;
  return result;
}

}  // namespace tenonnx
