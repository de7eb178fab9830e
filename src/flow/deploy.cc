// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/deploy.h"

#include <algorithm>
#include <optional>
#include <system_error>

#include "adapters/address.h"
#include "base/files.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "base/wording.h"
#include "contract/contract.h"
#include "device/device.h"
#include "flow/context_segments.h"
#include "flow/deploy_attempt.h"
#include "flow/kept_segments.h"
#include "flow/prepare_for_device.h"
#include "flow/result_text.h"
#include "ort/ops_library.h"

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
    const std::string where =
        fmt::format("target '{}' ({}): role '{}'", target.name, target.file.string(), role);
    // A library that is not installed: its executor says how to get it.
    if (code == StatusCode::kNotFound && address.starts_with("qnn:"))
      return made.status().at(where);
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
  for (const ChosenPass& pass : result.chosen) passes.push_back(to_json(pass));
  const LoadOptions& load = options.load;
  Json settings = {{"contract", result.contract_origin},
                   {"source_files", source_files(source)},
                   {"cut", result.cut_origin},
                   {"tried", to_json(result.tried)},
                   {"passes", std::move(passes)},
                   {"intra_op_threads", load.intra_op_threads},
                   {"inter_op_threads", load.inter_op_threads},
                   {"parallel", load.parallel},
                   {"spinning", load.spinning},
                   {"optimization", to_string(load.optimization)}};
  if (!result.kept.empty()) settings["kept_on_cpu"] = result.kept;
  if (!result.not_taken.empty()) settings["not_taken"] = to_json(result.not_taken);
  if (options.budget > 0) settings["budget"] = options.budget;
  return settings;
}

std::string executors_of(const std::vector<Segment>& segments) {
  std::vector<std::string> out;
  for (const Segment& segment : segments)
    out.push_back(fmt::format("{} on {}", segment.name, segment.executor));
  return fmt::format("{}", fmt::join(out, ", "));
}

// The rules of the target's file, and the proofs of the passes that they choose. On at most as many
// images as an optimization takes: a region shows what it does on two.
Result<DevicePreparation> prepare_compiled(const DeployOptions& options, const Device& device,
                                           const Model& source, DeployResult& result) {
  constexpr std::size_t kImages = 8;
  // Again, one by one: folding is proved too.
  Preparation shapes = options.preparation;
  shapes.fold_constants = false;
  Model model = source.clone();
  TENONNX_ASSIGN_OR_RETURN(result.passes, prepare_graph(model, shapes));
  DeployOptions few = options;
  few.max_images = options.max_images == 0 ? kImages : std::min(options.max_images, kImages);
  TENONNX_ASSIGN_OR_RETURN(InputSource shown, make_inputs(few, model, result.manifest.contract));
  const TensorInputs inputs = TensorInputs::from_source(std::move(shown));
  DevicePreparationOptions own;
  own.fold_constants = options.preparation.fold_constants;
  own.bitwise_only = !options.keep_on_cpu.empty();
  own.contract = &result.manifest.contract;
  own.seed = options.seed;
  own.load = options.load;
  own.progress = options.progress;
  TENONNX_ASSIGN_OR_RETURN(DevicePreparation made, prepare_for_device(model, device, inputs, own));
  result.chosen = std::move(made.passes);
  result.not_taken = made.not_taken;
  for (std::string& note : made.notes) result.notes.push_back(std::move(note));
  return made;
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
  if (!options.keep_on_cpu.empty() && !options.cut.empty())
    return InvalidArgument(
        "a cut (--cut {}) and a list of nodes (--keep-on-cpu {}) both say where the graph is "
        "divided; give one of them: a list may name any node, those behind a cut included",
        options.cut, options.keep_on_cpu.string());
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
  const bool compiles = std::any_of(device.roles.begin(), device.roles.end(),
                                    [](const auto& role) { return ships_context(role.second); });
  TENONNX_ASSIGN_OR_RETURN(result.passes, prepare_graph(prepared, options.preparation));
  TENONNX_ASSIGN_OR_RETURN(manifest.contract, load_contract(options, prepared, result));
  std::optional<DevicePreparation> made;
  if (compiles) {
    TENONNX_ASSIGN_OR_RETURN(made, prepare_compiled(options, device, source, result));
    prepared = made->plain.clone();
  }
  TENONNX_ASSIGN_OR_RETURN(const InputSource inputs,
                           make_inputs(options, prepared, manifest.contract));
  result.inputs = inputs.description();

  step("cut");
  const std::vector<std::string> contract_cut = manifest.contract.cut;  // the attempts change it
  std::optional<KeptSegments> kept;
  CutAttempt first;
  if (options.keep_on_cpu.empty()) {
    TENONNX_ASSIGN_OR_RETURN(first,
                             first_attempt(options.cut, manifest.contract, device, prepared));
  } else {
    TENONNX_ASSIGN_OR_RETURN(kept, keep_on_cpu(source, prepared, device, options.keep_on_cpu));
    first.origin = "nodes kept on the cpu (--keep-on-cpu)";
    result.kept = kept->nodes;
    for (const std::string& note : kept->notes) result.notes.push_back(note);
    if (!manifest.contract.cut.empty())
      result.notes.push_back("the contract's cut is not used: the list of nodes divides the graph");
  }
  std::optional<TemporaryDirectory> plain;
  if ((options.fuse_attention || compiles) && plain.emplace().path().empty())
    return Io("no temporary directory can be made; set TMPDIR to a writable directory");
  const fs::path plain_segments = plain ? plain->path() : fs::path();
  const std::vector<Check> preparation_checks = made ? made->checks : std::vector<Check>();
  const DeployParties parties{options,
                              device,
                              source,
                              prepared,
                              made && made->differ ? &made->compiled : nullptr,
                              inputs,
                              preparation_checks,
                              staged.path(),
                              plain_segments,
                              kept ? &*kept : nullptr};
  result.runs = RunBudget(options.budget);
  TENONNX_RETURN_IF_ERROR(try_cut(parties, first, result));
  if (!first.named && result.proof.verdict == Verdict::kFail) {
    const FurtherAttempts further = further_attempts(device, prepared, contract_cut);
    for (const CutAttempt& attempt : further.attempts) {
      if (result.proof.verdict != Verdict::kFail) break;
      step("cut");
      TENONNX_RETURN_IF_ERROR(try_cut(parties, attempt, result));
    }
    if (further.attempts.empty())
      result.notes.push_back("the whole graph fails and no cut was tried: " + further.why_none);
  }
  Proof& proof = result.proof;
  // Notes of the contract on what only a run can tell are answered by the run.
  if (proof.cut_is_right && !proof.evidence.empty())
    std::erase_if(result.notes, [](const std::string& note) {
      return note.ends_with("is not known before a run");
    });
  for (const std::string& note : proof.notes) result.notes.push_back(note);
  const auto applied = [](const PassReport& pass) { return pass.outcome.applied > 0; };
  const auto chosen = [](const ChosenPass& pass) { return pass.run.applied > 0; };
  if (!proof.cut_is_right && (std::any_of(result.passes.begin(), result.passes.end(), applied) ||
                              std::any_of(result.chosen.begin(), result.chosen.end(), chosen)))
    result.notes.push_back(
        "passes changed the graph before the cut; deploy with --no-fold-constants to see whether "
        "the difference is theirs");

  step("write");
  manifest.target = device.name;
  manifest.verdict = to_string(proof.verdict);
  manifest.source_model = options.model.filename().string();
  manifest.source_sha256 = source.sha256();
  manifest.inputs_sha256 = inputs_sha256(proof.input_hashes);
  manifest.versions = proof.versions;
  manifest.versions.emplace_back(fmt::format("target file {}", device.name), device.sha256);
  manifest.settings = settings_of(options, source, result);
  if (any_context(manifest.segments)) {
    TENONNX_ASSIGN_OR_RETURN(manifest.settings["contexts"],
                             record_contexts(staged.path(), manifest.segments));
  }
  manifest.stages = {{"export", "ok", counted(manifest.segments.size(), "segment file")},
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
