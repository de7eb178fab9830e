// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/optimize.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <system_error>

#include "adapters/sim.h"
#include "base/files.h"
#include "base/status.h"
#include "base/wording.h"
#include "contract/contract.h"
#include "flow/choose_passes.h"
#include "flow/proof_data.h"
#include "flow/staged_files.h"
#include "model/default_inputs.h"
#include "model/graph.h"
#include "model/grid_sample_modes.h"
#include "model/model.h"
#include "ort/executor.h"
#include "ort/library.h"
#include "passes/constant_part.h"
#include "passes/region_sessions.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

// Each is as good as the next.
constexpr std::size_t kRandomInputs = 1;

using Clock = std::chrono::steady_clock;

// "<out without .onnx><end>"
fs::path beside(const fs::path& out, const char* end) {
  fs::path stem = out;
  if (stem.extension() == ".onnx") stem.replace_extension();
  return stem.string() + end;
}

fs::path failures_of(const fs::path& out) { return out.string() + ".failed"; }

fs::path names_file(const fs::path& out) { return beside(out, ".passes.json"); }

Status check_paths(const OptimizeOptions& options) {
  if (options.out.empty()) return InvalidArgument("no output is named: give --out FILE");
  std::error_code error;
  if (!fs::exists(options.model, error))
    return NotFound("there is no model '{}'", options.model.string());
  if (fs::equivalent(options.model, options.out, error))
    return InvalidArgument("the output '{}' is the model itself: name another file",
                           options.out.string());
  TENONNX_RETURN_IF_ERROR(check_output_file(options.out, options.force));
  return check_output_file(names_file(options.out), options.force);
}

std::uint64_t bytes_on_disk(const fs::path& model, const std::vector<ExternalFile>& external) {
  std::error_code error;
  std::uint64_t bytes = fs::file_size(model, error);
  if (error) return 0;
  for (const ExternalFile& file : external)
    bytes += file.file == nullptr ? 0 : file.file->bytes().size();
  return bytes;
}

struct Data {
  std::optional<TensorInputs> inputs;
  std::optional<Contract> contract;
  std::vector<std::string> notes;
};

Result<Data> make_data(const OptimizeOptions& options, const Model& model) {
  Data data;
  if (!options.images.empty() && !options.inputs.empty())
    return InvalidArgument("--images and --inputs are two sources of inputs: give one");
  std::vector<std::string> assumed;
  if (const auto path = find_contract(options.model)) {
    TENONNX_ASSIGN_OR_RETURN(data.contract, read_contract(*path));
  } else if (auto guessed = guess_contract(model, assumed); guessed.ok()) {
    data.contract = std::move(guessed).value();
    if (!options.images.empty())
      for (const std::string& line : assumed)
        data.notes.push_back("the contract is a guess: " + line);
  } else if (!options.images.empty()) {
    return guessed.status();
  }
  const std::vector<TensorInfo> infos = model.inputs();
  if (!options.inputs.empty()) {
    TENONNX_ASSIGN_OR_RETURN(data.inputs,
                             TensorInputs::from_files(options.inputs, infos, NonFinite::kNote));
    for (const std::string& note : data.inputs->notes()) data.notes.push_back(note);
  } else if (!options.images.empty()) {
    TENONNX_ASSIGN_OR_RETURN(
        InputSource source,
        InputSource::from_images(options.images, *data.contract, options.max_images));
    data.inputs = TensorInputs::from_source(std::move(source));
  } else {
    TENONNX_ASSIGN_OR_RETURN(InputSource source,
                             InputSource::random(infos, data.contract.value_or(Contract()),
                                                 kRandomInputs, options.seed));
    data.inputs = TensorInputs::from_source(std::move(source));
  }
  return data;
}

// Of what was kept.
PassClass least_exact(const FixedPointResult& result) {
  PassClass least = PassClass::kBitwise;
  for (const PassRun& run : result.passes)
    if (run.applied > 0) least = std::max(least, run.pass->exactness);
  return least;
}

// Of all bounded passes, by tensors of the source: a pass after another may err as much as both.
std::map<std::string, double> recomputed(const FixedPointResult& passes) {
  std::map<std::string, double> all;
  for (const PassRun& run : passes.passes)
    for (const auto& [tensor, bound] : run.recomputed) all[tensor] += bound;
  return all;
}

// "NODE: REASON (7 more)", and what makes an unknown shape known.
std::string first_reason(const OptimizeOptions& options, const PassRun& run, const Model& model) {
  const Refusal& first = run.skipped.front();
  std::string why = fmt::format("{}: {}", first.node, first.reason);
  if (run.skipped.size() > 1) why += fmt::format(" ({} more)", run.skipped.size() - 1);
  const auto says = [&](const char* words) {
    return first.reason.find(words) != std::string::npos;
  };
  if (!says("must be known") && !says("not known") && !says("is known")) return why;
  std::vector<std::string> advice;
  for (const TensorInfo& input : model.inputs())
    if (!input.has_rank || element_count(input.shape) < 0) {
      advice.push_back(fmt::format("give --input-shape {}=SHAPE", input.name));
      break;
    }
  const auto& passes = options.passes;
  if (std::find(passes.begin(), passes.end(), "fold_constants") == passes.end())
    advice.push_back(
        fmt::format("run fold_constants first: --pass fold_constants,{}", run.pass->name));
  return advice.empty() ? why : fmt::format("{}; {}", why, fmt::join(advice, ", and "));
}

// A pass that was asked for by name and declined everywhere, or in some places: the caller does not
// have what he wants.
void note_declined(const OptimizeOptions& options, const Model& model, OptimizeResult& result) {
  if (options.passes.empty()) return;
  for (const PassRun& run : result.passes.passes) {
    if (run.undone) continue;
    if (run.skipped.empty()) {
      if (run.applied == 0)
        result.notes.push_back(fmt::format("{} found nothing to change", run.pass->name));
      continue;
    }
    const std::string why = first_reason(options, run, model);
    if (run.applied == 0)
      result.declined.push_back(fmt::format("{} changed nothing. {}", run.pass->name, why));
    else if (run.pass->stage == PassStage::kRewrite)
      result.left.push_back(
          fmt::format("{} left {} of {}: first {}", run.pass->name, run.skipped.size(),
                      counted(run.sites.size() + run.skipped.size(), "site"), why));
  }
}

// Of an earlier run whose output this one has replaced.
void remove_minimal_cases(const OptimizeOptions& options, const OptimizeResult& result) {
  if (result.proof == ProofLevel::kNone || result.verdict == Verdict::kFail ||
      result.passes.any_undone())
    return;
  const fs::path cases = failures_of(options.out);
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(cases, error)) && holds_only_minimal_cases(cases).ok())
    fs::remove_all(cases, error);
}

// What a model computes that does not load was not measured.
void note_misspelled(const OptimizeOptions& options, const std::string& what,
                     OptimizeResult& result) {
  constexpr const char* kMends = "normalize_grid_sample";
  const bool mends =
      std::find(options.passes.begin(), options.passes.end(), kMends) != options.passes.end();
  result.whole.checks.push_back(inconclusive_check(
      "whole graph: as it was",
      fmt::format(
          "the model does not load in ONNX Runtime: {}; the other checks are against the "
          "model with that spelling mended and nothing else{}",
          what,
          mends ? std::string()
                : fmt::format("; name {} first, and the passes behind it are proved", kMends))));
  result.whole.verdict = combine(result.whole.verdict, Verdict::kInconclusive);
}

void judge(OptimizeResult& result) {
  if (result.proof == ProofLevel::kNone) return;
  Verdict verdict = result.whole.verdict;
  if (result.proof == ProofLevel::kRegions)
    for (const PassRun& run : result.passes.passes)
      if (run.applied > 0 || run.undone) verdict = combine(verdict, run.verdict);
  if (!result.declined.empty()) verdict = combine(verdict, Verdict::kInconclusive);
  result.verdict = verdict;
}

// The contract goes with the model: without it the next command would guess, and lose the cut.
Status write_contract(const OptimizeOptions& options, StagedFiles& staging,
                      OptimizeResult& result) {
  const auto source = find_contract(options.model);
  if (!source) return {};
  const fs::path target = beside(options.out, ".contract.json");
  std::error_code error;
  if (fs::exists(target, error)) {
    result.notes.push_back(
        fmt::format("'{}' exists and is left as it is", target.filename().string()));
    return {};
  }
  TENONNX_ASSIGN_OR_RETURN(Contract contract, read_contract(*source));
  const NameRecord& names = result.passes.names;
  for (std::string& tensor : contract.cut) {
    if (const auto renamed = names.renamed.find(tensor); renamed != names.renamed.end())
      tensor = renamed->second;
    const auto removed = names.removed.find(tensor);
    if (removed == names.removed.end()) continue;
    result.notes.push_back(fmt::format("the contract's cut is not handed on: {} took '{}' away",
                                       removed->second, tensor));
    contract.cut.clear();
    break;
  }
  return write_json_file(staging.path() / target.filename(), to_json(contract));
}

struct SavedModel {
  std::string sha256;
  std::uint64_t bytes = 0;
};

Result<SavedModel> save_staged(const OptimizeOptions& options, const Model& model,
                               const StagedFiles& staging) {
  const fs::path path = staging.path() / options.out.filename();
  SaveOptions save;
  SavedModel saved;
  save.keep_metadata = options.keep_metadata;
  save.sha256 = &saved.sha256;
  TENONNX_RETURN_IF_ERROR(model.save(path, save));
  saved.bytes = bytes_on_disk(path, model.external_files());
  return saved;
}

Status publish(const OptimizeOptions& options, SavedModel saved, StagedFiles& staging,
               OptimizeResult& result) {
  result.after.sha256 = std::move(saved.sha256);
  result.after.bytes = saved.bytes;
  result.written = true;
  TENONNX_RETURN_IF_ERROR(write_contract(options, staging, result));
  TENONNX_RETURN_IF_ERROR(
      write_json_file(staging.path() / names_file(options.out).filename(), to_json(result)));
  if (Status status = staging.publish(options.out.filename().string()); !status.ok()) {
    result.written = false;
    return status;
  }
  return {};
}

}  // namespace

Result<ProofLevel> proof_level_from_string(std::string_view text) {
  for (const ProofLevel level : {ProofLevel::kNone, ProofLevel::kWhole, ProofLevel::kRegions})
    if (text == to_string(level)) return level;
  return InvalidArgument("proof '{}' is none of none, whole, regions", text);
}

std::string_view to_string(ProofLevel level) {
  switch (level) {
    case ProofLevel::kNone:
      return "none";
    case ProofLevel::kWhole:
      return "whole";
    case ProofLevel::kRegions:
      break;
  }
  return "regions";
}

Result<OptimizeResult> optimize_file(const OptimizeOptions& options) {
  const auto start = Clock::now();
  TENONNX_ASSIGN_OR_RETURN(std::vector<const PassInfo*> passes, choose_passes(options));
  TENONNX_RETURN_IF_ERROR(options_by_pass(passes, options.options).status());
  TENONNX_RETURN_IF_ERROR(check_paths(options));
  TENONNX_ASSIGN_OR_RETURN(StagedFiles staging, StagedFiles::create(options.out));
  // Opened beside the reading of the model, which waits for the disk.
  const auto runtime = std::async(std::launch::async, [] { return onnxruntime().ok(); });
  TENONNX_ASSIGN_OR_RETURN(Model model, Model::load(options.model));
  OptimizeResult result;
  result.model = options.model.filename().string();
  result.out = options.out.filename().string();
  result.proof = options.proof;
  result.before = {count_nodes(model), bytes_on_disk(options.model, model.external_files()),
                   model.sha256()};
  if (const int pinned = pin_default_inputs(model.mutable_proto()); pinned > 0)
    result.notes.push_back(fmt::format(
        "{} with a stored value, which a caller could override, {} a constant now (exporters write "
        "such inputs where they keep initializers as inputs)",
        counted(pinned, "input"), pinned == 1 ? "is" : "are each"));
  if (!options.input_shapes.empty()) {
    const std::vector<std::string> fix = {"fix_input_shapes"};
    TENONNX_ASSIGN_OR_RETURN(
        const auto reports,
        run_passes(model, fix,
                   PassOptions(options.input_shapes.begin(), options.input_shapes.end())));
    result.notes.push_back(fmt::format("fix_input_shapes changed {}",
                                       counted(reports.front().outcome.applied, "shape")));
  }

  FixedPointRequest request;
  request.passes = std::move(passes);
  request.options = options.options;
  request.leave_out_other_opsets = options.passes.empty();
  request.repeat = options.passes.empty();
  request.progress = options.progress;
  Data data;
  ProofData regions;
  const auto executor = make_proof_executor();
  std::optional<Model> source;
  std::optional<PassProver> prover;
  if (options.proof != ProofLevel::kNone) {
    TENONNX_ASSIGN_OR_RETURN(data, make_data(options, model));
    result.inputs = data.inputs->description();
    result.random_inputs = data.inputs->is_random();
    result.notes.insert(result.notes.end(), data.notes.begin(), data.notes.end());
    result.versions = executor->versions();
  }
  // What is not written need not be copied from step to step either: the dynamo exporter leaves a
  // stack trace at every node.
  if (!options.keep_metadata) strip_metadata(model.mutable_proto());
  std::string misspelled;  // why the model cannot run as it is
  if (options.proof != ProofLevel::kNone) {
    source = model.clone();
    if (const auto found = misspelled_mode(*source); found && spell_modes(*source) > 0)
      misspelled = found->what;
  }
  // For the check at the end, on the other processor while the passes run.
  std::future<Result<ComputedConstants>> constants;
  if (source)
    constants = std::async(std::launch::async, [&] {
      return compute_constants(*source,
                               [](std::string_view) { return std::optional<TensorInfo>(); });
    });
  const Contract* contract = data.contract ? &*data.contract : nullptr;
  if (options.proof == ProofLevel::kRegions) {
    regions = region_data(*data.inputs);
    ProofOptions proof;
    proof.seed = options.seed;
    proof.threads = options.load.intra_op_threads;
    proof.failures = failures_of(options.out);
    prover.emplace(*executor, regions, std::move(proof));
    request.prove = [&](const PassInfo& pass, const Model& before, const Model& after,
                        const PassOutcome& outcome) {
      return prover->prove(pass, before, after, outcome);
    };
    request.task_gate = [&](const PassInfo& pass, const Model& before,
                            const Model& after) -> Result<std::vector<Check>> {
      TENONNX_ASSIGN_OR_RETURN(WholeCheck whole, check_whole(before, after, pass.exactness,
                                                             *data.inputs, contract, options.load));
      return std::move(whole.checks);
    };
  }
  TENONNX_ASSIGN_OR_RETURN(result.passes, run_to_fixed_point(model, request));
  result.after.nodes = count_nodes(model);
  // While the check runs: it reads the model too, and what it refuses is not published.
  auto saving =
      std::async(std::launch::async, [&] { return save_staged(options, model, staging); });
  if (options.proof != ProofLevel::kNone) {
    if (options.progress) options.progress("whole graph", 0, 0);
    const auto reduced = constants.get();
    TENONNX_ASSIGN_OR_RETURN(
        result.whole,
        check_whole(*source, model, least_exact(result.passes), *data.inputs, contract,
                    options.load, result.passes.names.renamed, recomputed(result.passes),
                    reduced.ok() ? &reduced->model : nullptr));
  }
  if (!misspelled.empty()) note_misspelled(options, misspelled, result);
  note_declined(options, model, result);
  judge(result);
  result.versions.insert(result.versions.begin(), {"tenonnx", std::string(version())});
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  // Only what has passed, or was not asked to, is written: an undone pass is not in it.
  if (options.proof != ProofLevel::kNone && result.whole.verdict == Verdict::kFail) return result;
  TENONNX_ASSIGN_OR_RETURN(SavedModel saved, saving.get());
  TENONNX_RETURN_IF_ERROR(publish(options, std::move(saved), staging, result));
  remove_minimal_cases(options, result);
  return result;
}

}  // namespace tenonnx
