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
#include "flow/cuts.h"
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

constexpr std::string_view kNotCompiled = "not compiled: ";
constexpr std::string_view kFuseOffer = "--fuse-attention computes each by one operator";

Status save_segment(const Segment& segment, const Model& model, const fs::path& directory,
                    bool keep_metadata) {
  SaveOptions save;
  save.keep_metadata = keep_metadata;
  if (uses_ops_library(model)) TENONNX_RETURN_IF_ERROR(copy_ops_library(directory));
  return model.save(directory / segment.file, save).at("segment '" + segment.name + "'");
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

// Of an attempt that was given up; nothing else lies in the directory before the package is
// written.
Status remove_segments(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) fs::remove_all(entry, error);
  if (error) return Io("cannot empty '{}': {}", directory.string(), error.message());
  return {};
}

Json settings_of(const DeployOptions& options, const Model& source, const DeployResult& result) {
  Json passes = Json::array();
  for (const PassReport& pass : result.passes)
    passes.push_back({{"name", pass.name},
                      {"applied", pass.outcome.applied},
                      {"skipped", pass.outcome.skipped.size()}});
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
  return settings;
}

std::string executors_of(const std::vector<Segment>& segments) {
  std::vector<std::string> out;
  for (const Segment& segment : segments)
    out.push_back(fmt::format("{} on {}", segment.name, segment.executor));
  return fmt::format("{}", fmt::join(out, ", "));
}

// What every attempt takes.
struct Parties {
  const DeployOptions& options;
  const Device& device;
  const Model& source;
  const Model& prepared;
  const InputSource& inputs;
  const fs::path& directory;
  const fs::path& plain;  // for the same segments without fused operators
  KeptSegments* kept;     // nullptr without DeployOptions::keep_on_cpu
};

// Fuses the attention of a segment on the cpu, or says that it can be.
Status fuse_attention(const DeployOptions& options, const Segment& segment, Model& model,
                      DeployResult& result) {
  if (segment.executor != "cpu") return {};
  const std::vector<std::string> names(kFusePasses.begin(), kFusePasses.end());
  Model fused = model.clone();
  auto reports = run_passes(fused, names, {});
  // An opset that the pass does not take: nothing to offer.
  if (reports.status().code() == StatusCode::kUnsupported) return {};
  if (!reports.ok()) return reports.status().at("segment '" + segment.name + "'");
  PassReport& report = reports->front();
  if (report.outcome.applied == 0) return {};
  if (!options.fuse_attention) {
    result.notes.push_back(
        fmt::format("segment '{}' computes deformable attention by GridSample at {}; {}",
                    segment.name, counted(report.outcome.sites.size(), "place"), kFuseOffer));
    return {};
  }
  model = std::move(fused);
  for (PassReport& one : *reports)
    if (one.outcome.applied > 0) result.passes.push_back(std::move(one));
  return {};
}

// False where the vendor's compiler does not take it: the segment ships as it is then, does not
// load, and fails the proof with what the compiler says.
Result<bool> compile(const Parties& parties, const Segment& segment, const Model& model,
                     DeployResult& result) {
  if (parties.options.progress) parties.options.progress("compile " + segment.name, 0, 0);
  const Status status = compile_segment(segment, model, parties.directory, parties.options.load);
  if (status.ok()) return true;
  if (status.code() == StatusCode::kIo) return status;
  result.notes.push_back(
      fmt::format("{}segment '{}': {}", kNotCompiled, segment.name, status.message()));
  return false;
}

Status add_segment(const Parties& parties, const std::string& name, const std::string& executor,
                   Model& model, DeployResult& result) {
  Manifest& manifest = result.manifest;
  Segment segment;
  segment.name = name;
  segment.file = name + ".onnx";
  segment.executor = executor;
  segment.inputs = model.inputs();
  segment.outputs = model.outputs();
  const bool keep = parties.options.keep_metadata;
  if (ships_context(executor)) {
    segment.file = context_file(name);
    TENONNX_ASSIGN_OR_RETURN(const bool compiled, compile(parties, segment, model, result));
    if (compiled) {
      TENONNX_RETURN_IF_ERROR(save_segment(segment, model, parties.plain, keep));
      manifest.segments.push_back(std::move(segment));
      return {};
    }
    segment.file = name + ".onnx";
  }
  if (!parties.plain.empty())
    TENONNX_RETURN_IF_ERROR(save_segment(segment, model, parties.plain, keep));
  TENONNX_RETURN_IF_ERROR(fuse_attention(parties.options, segment, model, result));
  TENONNX_RETURN_IF_ERROR(save_segment(segment, model, parties.directory, keep));
  manifest.segments.push_back(std::move(segment));
  return {};
}

// Where the target's role of that name says.
Status add_segment(const Parties& parties, const std::string& name, Model& model,
                   DeployResult& result) {
  TENONNX_ASSIGN_OR_RETURN(const std::string executor, parties.device.executor_for(name));
  return add_segment(parties, name, executor, model, result);
}

// Writes the segments of one cut and proves them. Those of an earlier attempt go.
Status try_cut(const Parties& parties, const CutAttempt& attempt, DeployResult& result) {
  const DeployOptions& options = parties.options;
  Manifest& manifest = result.manifest;
  std::optional<CutModel> parts;
  if (!attempt.cut.empty()) {
    auto cut = cut_model(parties.prepared, attempt.cut);
    if (!cut.ok()) {
      if (result.tried.empty()) return cut.status().at(attempt.origin);
      result.tried.push_back({attempt.origin, "not possible", {cut.status().message()}});
      return {};
    }
    parts.emplace(std::move(*cut));
  }
  result.cut_origin = attempt.origin;
  TENONNX_RETURN_IF_ERROR(remove_segments(parties.directory));
  if (!parties.plain.empty()) TENONNX_RETURN_IF_ERROR(remove_segments(parties.plain));
  std::erase_if(result.passes, [](const PassReport& pass) {
    return std::find(kFusePasses.begin(), kFusePasses.end(), pass.name) != kFusePasses.end();
  });
  std::erase_if(result.notes, [](const std::string& note) {
    return note.ends_with(kFuseOffer) || note.starts_with(kNotCompiled);
  });
  manifest.segments.clear();
  manifest.boundaries.clear();
  manifest.contract.cut.clear();
  result.boundaries.clear();
  result.cut_description.clear();
  if (parties.kept != nullptr) {
    for (KeptSegments::Part& part : parties.kept->parts)
      TENONNX_RETURN_IF_ERROR(add_segment(parties, part.name, part.executor, part.model, result));
    result.boundaries = parties.kept->boundaries;
  } else if (parts) {
    TENONNX_RETURN_IF_ERROR(add_segment(parties, "encoder", parts->encoder, result));
    TENONNX_RETURN_IF_ERROR(add_segment(parties, "decoder", parts->decoder, result));
    result.boundaries = std::move(parts->boundaries);
    std::vector<std::string> names;
    for (const BoundaryTensor& boundary : result.boundaries) names.push_back(boundary.source);
    result.cut_description = describe(describe_named_cut(parties.prepared, names));
  } else {
    Model whole = parties.prepared.clone();
    TENONNX_RETURN_IF_ERROR(add_segment(parties, "model", whole, result));
  }
  for (const BoundaryTensor& boundary : result.boundaries) {
    manifest.boundaries.emplace_back(boundary.name, boundary.source);
    // The package's contract names the cut that the package has; many segments have no one cut.
    if (parts) manifest.contract.cut.push_back(boundary.source);
  }

  ProofRequest request;
  request.package = parties.directory;
  const auto fused = [](const PassReport& pass) { return pass.name == kFusePass; };
  if (std::any_of(result.passes.begin(), result.passes.end(), fused) ||
      any_context(manifest.segments))
    request.plain = parties.plain;
  request.contract = &manifest.contract;
  request.segments = &manifest.segments;
  request.source = &parties.source;
  request.inputs = &parties.inputs;
  request.labels = find_labels(options.labels, parties.inputs.folder());
  request.labels_given = !options.labels.empty();
  request.load = options.load;
  request.progress = options.progress;
  TENONNX_ASSIGN_OR_RETURN(result.proof, prove(request));
  if (result.proof.verdict != Verdict::kFail && any_context(manifest.segments)) {
    if (options.progress) options.progress("reload in a fresh process", 0, 0);
    for (Check& check : reload_contexts(parties.directory, manifest.segments, options.program))
      result.proof.checks.push_back(std::move(check));
    result.proof.verdict = overall_verdict(result.proof.checks);
  }
  result.tried.push_back(tried_cut(attempt, result.proof));
  return {};
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
  TENONNX_ASSIGN_OR_RETURN(result.passes, prepare_graph(prepared, options.preparation));
  const bool compiles = std::any_of(device.roles.begin(), device.roles.end(),
                                    [](const auto& role) { return ships_context(role.second); });
  if (compiles) {
    TENONNX_ASSIGN_OR_RETURN(DevicePreparation made, prepare_for_device(prepared, device));
    for (PassReport& pass : made.passes) result.passes.push_back(std::move(pass));
    for (std::string& note : made.notes) result.notes.push_back(std::move(note));
  }
  TENONNX_ASSIGN_OR_RETURN(manifest.contract, load_contract(options, prepared, result));
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
  const Parties parties{options, device,        source,         prepared,
                        inputs,  staged.path(), plain_segments, kept ? &*kept : nullptr};
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
