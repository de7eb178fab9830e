// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/deploy_attempt.h"

#include <algorithm>
#include <optional>
#include <system_error>

#include "base/status.h"
#include "base/wording.h"
#include "flow/context_segments.h"
#include "flow/cuts.h"
#include "ort/ops_library.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kNotCompiled = "not compiled: ", kNotCut = "not cut: ";
constexpr std::string_view kFuseOffer = "--fuse-attention computes each by one operator";

Status save_segment(const Segment& segment, const Model& model, const fs::path& directory,
                    bool keep_metadata) {
  SaveOptions save;
  save.keep_metadata = keep_metadata;
  if (uses_ops_library(model)) TENONNX_RETURN_IF_ERROR(copy_ops_library(directory));
  return model.save(directory / segment.file, save).at("segment '" + segment.name + "'");
}

// Of an attempt that was given up; nothing else lies in the directory before the package is
// written.
Status remove_segments(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) fs::remove_all(entry, error);
  if (error) return Io("cannot empty '{}': {}", directory.string(), error.message());
  return {};
}

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
  const auto report = std::find_if(reports->begin(), reports->end(),
                                   [](const PassReport& one) { return one.name == kFusePass; });
  if (report == reports->end() || report->outcome.applied == 0) return {};
  if (!options.fuse_attention) {
    result.notes.push_back(
        fmt::format("segment '{}' computes deformable attention by GridSample at {}; {}",
                    segment.name, counted(report->outcome.sites.size(), "place"), kFuseOffer));
    return {};
  }
  model = std::move(fused);
  for (PassReport& one : *reports)
    if (one.outcome.applied > 0) result.passes.push_back(std::move(one));
  return {};
}

// False where the vendor's compiler does not take it: the segment ships as it is then, does not
// load, and fails the proof with what the compiler says.
Result<bool> compile(const DeployParties& parties, const Segment& segment, const Model& model,
                     DeployResult& result) {
  if (parties.options.progress) parties.options.progress("compile " + segment.name, 0, 0);
  const Status status = compile_segment(segment, model, parties.directory, parties.options.load);
  if (status.ok()) return true;
  if (status.code() == StatusCode::kIo) return status;
  result.notes.push_back(
      fmt::format("{}segment '{}': {}", kNotCompiled, segment.name, status.message()));
  return false;
}

// Whether two graphs take and make the same tensors, in the same order.
bool same_interface(const Model& a, const Model& b) {
  const auto same = [](const std::vector<TensorInfo>& left, const std::vector<TensorInfo>& right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](const TensorInfo& x, const TensorInfo& y) { return x.name == y.name; });
  };
  return same(a.inputs(), b.inputs()) && same(a.outputs(), b.outputs());
}

// `for_compiler`: the same segment as the compiler gets it; nullptr: as it is.
Status add_segment(const DeployParties& parties, const std::string& name,
                   const std::string& executor, Model& model, const Model* for_compiler,
                   DeployResult& result) {
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
    const bool other = for_compiler != nullptr && same_interface(model, *for_compiler);
    TENONNX_ASSIGN_OR_RETURN(const bool compiled,
                             compile(parties, segment, other ? *for_compiler : model, result));
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
Status add_segment(const DeployParties& parties, const std::string& name, Model& model,
                   const Model* for_compiler, DeployResult& result) {
  TENONNX_ASSIGN_OR_RETURN(const std::string executor, parties.device.executor_for(name));
  return add_segment(parties, name, executor, model, for_compiler, result);
}

// The same cut of the graph that the compiler gets. None where that graph has no such cut, which is
// a note: the compiler gets the other graph then.
std::optional<CutModel> cut_compiled(const DeployParties& parties, const CutModel& parts,
                                     DeployResult& result) {
  if (parties.compiled == nullptr) return std::nullopt;
  std::vector<std::string> names;
  for (const BoundaryTensor& boundary : parts.boundaries) names.push_back(boundary.source);
  auto cut = cut_model(*parties.compiled, names);
  if (cut.ok()) return std::move(*cut);
  result.notes.push_back(
      fmt::format("{}by the graph that was prepared for the compiler: {}; it gets the graph before "
                  "convert_opset and fuse_gelu",
                  kNotCut, cut.status().message()));
  return std::nullopt;
}

// What it takes to decide what the budget has left open; `contexts`: those that were not loaded
// again.
void note_budget(std::size_t contexts, DeployResult& result) {
  result.budget_needed = 0;
  if (!result.runs.used_up()) return;
  const BudgetStop& stop = result.proof.budget;
  result.runs.leave_undone(stop.left + contexts);
  if (result.proof.verdict == Verdict::kFail) {
    if (stop.stopped)
      result.notes.push_back(fmt::format("{}: FAIL by {} of {}: {}", result.cut_origin,
                                         stop.compared, counted(stop.inputs, "input"), stop.text));
    return;
  }
  result.budget_needed = result.runs.needed();
}

}  // namespace

Status try_cut(const DeployParties& parties, const CutAttempt& attempt, DeployResult& result) {
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
    return note.ends_with(kFuseOffer) || note.starts_with(kNotCompiled) ||
           note.starts_with(kNotCut);
  });
  manifest.segments.clear();
  manifest.boundaries.clear();
  manifest.contract.cut.clear();
  result.boundaries.clear();
  result.cut_description.clear();
  if (parties.kept != nullptr) {
    for (KeptSegments::Part& part : parties.kept->parts)
      TENONNX_RETURN_IF_ERROR(
          add_segment(parties, part.name, part.executor, part.model, nullptr, result));
    result.boundaries = parties.kept->boundaries;
  } else if (parts) {
    const std::optional<CutModel> compiled = cut_compiled(parties, *parts, result);
    TENONNX_RETURN_IF_ERROR(add_segment(parties, "encoder", parts->encoder,
                                        compiled ? &compiled->encoder : nullptr, result));
    TENONNX_RETURN_IF_ERROR(add_segment(parties, "decoder", parts->decoder,
                                        compiled ? &compiled->decoder : nullptr, result));
    result.boundaries = std::move(parts->boundaries);
    std::vector<std::string> names;
    for (const BoundaryTensor& boundary : result.boundaries) names.push_back(boundary.source);
    result.cut_description = describe(describe_named_cut(parties.prepared, names));
  } else {
    Model whole = parties.prepared.clone();
    TENONNX_RETURN_IF_ERROR(add_segment(parties, "model", whole, parties.compiled, result));
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
  request.boundaries = manifest.boundaries;
  request.source = &parties.source;
  request.inputs = &parties.inputs;
  request.labels = find_labels(options.labels, parties.inputs.folder());
  request.labels_given = !options.labels.empty();
  request.budget = &result.runs;
  request.load = options.load;
  request.progress = options.progress;
  TENONNX_ASSIGN_OR_RETURN(result.proof, prove(request));
  Proof& proof = result.proof;
  const bool contexts = any_context(manifest.segments);
  std::size_t not_reloaded = 0;
  if (contexts && proof.cut_is_right)
    proof.checks.insert(proof.checks.begin(), parties.checks.begin(), parties.checks.end());
  if (contexts && proof.verdict != Verdict::kFail && proof.budget.stopped) {
    not_reloaded = options.program.empty() ? 0 : count_contexts(manifest.segments);
  } else if (contexts && proof.verdict != Verdict::kFail) {
    if (options.progress) options.progress("reload in a fresh process", 0, 0);
    for (Check& check :
         reload_contexts(parties.directory, manifest.segments, options.program, result.runs)) {
      not_reloaded += check.verdict == Verdict::kInconclusive ? 1 : 0;
      proof.checks.push_back(std::move(check));
    }
  }
  proof.verdict = overall_verdict(proof.checks);
  result.tried.push_back(tried_cut(attempt, proof));
  note_budget(not_reloaded, result);
  return {};
}

}  // namespace tenonnx
