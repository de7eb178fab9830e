// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/prepare_for_device.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

#include "adapters/sim.h"
#include "base/status.h"
#include "base/wording.h"
#include "flow/proof_data.h"
#include "flow/result_text.h"
#include "flow/whole_check.h"
#include "passes/proof.h"

namespace tenonnx {
namespace {

constexpr std::string_view kWhole = "whole graph: ", kPrepared = "prepared graph: ";

// Runs one pass after the other, each with its proof.
class Preparer {
 public:
  Preparer(const Device& device, const TensorInputs& inputs,
           const DevicePreparationOptions& options)
      : device_(device),
        inputs_(inputs),
        options_(options),
        data_(region_data(inputs)),
        executor_(make_proof_executor()),
        prover_(*executor_, data_, proof_options(options)) {}

  Result<DevicePreparation> prepare(const Model& model) {
    out_.plain = model.clone();
    if (options_.fold_constants)
      TENONNX_RETURN_IF_ERROR(
          run("fold_constants", "what follows from constants and static shapes", {}, out_.plain));
    if (!device_.supported.empty()) {
      if (const auto need = need_lower_rank(out_.plain, device_))
        TENONNX_RETURN_IF_ERROR(run("collapse_rank", need->why,
                                    {{"max_rank", std::to_string(need->option)}}, out_.plain));
    }
    out_.compiled = out_.plain.clone();
    if (!device_.supported.empty()) TENONNX_RETURN_IF_ERROR(for_the_compiler());
    if (out_.differ) TENONNX_RETURN_IF_ERROR(check_compiled());
    out_.not_taken = not_taken(out_.compiled, device_);
    for (const NotTaken& one : out_.not_taken) out_.notes.push_back(describe(one, device_));
    return std::move(out_);
  }

 private:
  static ProofOptions proof_options(const DevicePreparationOptions& options) {
    ProofOptions out;
    out.seed = options.seed;
    out.threads = options.load.intra_op_threads;
    return out;
  }

  // The passes that are not bitwise.
  Status for_the_compiler() {
    const auto opset = need_other_opset(out_.compiled, device_);
    if (options_.bitwise_only) {
      if (opset || need_gelu(out_.compiled, device_))
        out_.notes.push_back(
            "convert_opset and fuse_gelu are left out: they are for graphs that the device has to "
            "itself, and the nodes that are kept on the cpu are named by the graph as it is");
      return {};
    }
    if (opset)
      TENONNX_RETURN_IF_ERROR(run("convert_opset", opset->why,
                                  {{"target", std::to_string(opset->option)}}, out_.compiled));
    if (const auto gelu = need_gelu(out_.compiled, device_))
      TENONNX_RETURN_IF_ERROR(run("fuse_gelu", gelu->why, {}, out_.compiled));
    return {};
  }

  Status run(std::string_view name, std::string why, const PassOptions& own, Model& model) {
    TENONNX_ASSIGN_OR_RETURN(const PassInfo* pass, find_pass(name));
    FixedPointRequest request;
    request.passes = {pass};
    for (const auto& [option, value] : own)
      request.options[fmt::format("{}.{}", name, option)] = value;
    request.repeat = false;
    request.prove = [this](const PassInfo& info, const Model& before, const Model& after,
                           const PassOutcome& outcome) {
      return prover_.prove(info, before, after, outcome);
    };
    request.progress = options_.progress;
    TENONNX_ASSIGN_OR_RETURN(FixedPointResult result, run_to_fixed_point(model, request));
    note(ChosenPass{std::move(why), std::move(result.passes.front())});
    return {};
  }

  void note(ChosenPass chosen) {
    const PassRun& run = chosen.run;
    const std::string_view name = run.pass->name;
    if (run.undone)
      out_.notes.push_back(fmt::format("{} was undone: {}", name, run.problem));
    else if (!run.problem.empty())
      out_.notes.push_back(fmt::format("{} was left out: {}", name, run.problem));
    else if (run.applied == 0 && !run.skipped.empty())
      out_.notes.push_back(fmt::format("{} changed nothing: {}: {}", name, run.skipped[0].node,
                                       run.skipped[0].reason));
    // What folds nothing was not needed.
    if (run.applied == 0 && !run.undone && name == "fold_constants") return;
    if (run.applied > 0 && run.pass->exactness != PassClass::kBitwise) {
      out_.differ = true;
      out_.checks.push_back(check_of(run));
    }
    out_.passes.push_back(std::move(chosen));
  }

  static Check check_of(const PassRun& run) {
    Check check = run.proofs.front().worst;
    check.note = check.name + (check.note.empty() ? "" : "; ") + check.note;
    check.name = fmt::format("{}proof of {}", kPrepared, run.pass->name);
    check.verdict = run.verdict;
    return check;
  }

  Status check_compiled() {
    TENONNX_ASSIGN_OR_RETURN(WholeCheck whole,
                             check_whole(out_.plain, out_.compiled, PassClass::kAlgebraic, inputs_,
                                         options_.contract, options_.load));
    if (whole.verdict == Verdict::kFail) return undo();
    for (Check& check : whole.checks) {
      if (check.name.starts_with(kWhole)) check.name.erase(0, kWhole.size());
      check.name = fmt::format("{}as compiled: {}", kPrepared, check.name);
      out_.checks.push_back(std::move(check));
    }
    return {};
  }

  // Each pass held by itself, all of them together did not: nothing of it is compiled.
  Status undo() {
    for (ChosenPass& chosen : out_.passes) {
      PassRun& run = chosen.run;
      if (run.pass->exactness == PassClass::kBitwise || run.applied == 0) continue;
      run.undone = true;
      run.applied = 0;
      run.problem = "the whole graph behind it failed its check";
      out_.notes.push_back(fmt::format("{} was undone: {}", run.pass->name, run.problem));
    }
    out_.compiled = out_.plain.clone();
    out_.differ = false;
    out_.checks.clear();
    return {};
  }

  const Device& device_;
  const TensorInputs& inputs_;
  const DevicePreparationOptions& options_;
  const ProofData data_;
  const std::unique_ptr<Executor> executor_;
  const PassProver prover_;
  DevicePreparation out_;
};

}  // namespace

Result<DevicePreparation> prepare_for_device(const Model& model, const Device& device,
                                             const TensorInputs& inputs,
                                             const DevicePreparationOptions& options) {
  return Preparer(device, inputs, options).prepare(model);
}

std::string describe(const std::vector<ChosenPass>& passes) {
  std::vector<std::vector<std::string>> rows;
  for (const ChosenPass& chosen : passes) {
    const PassRun& run = chosen.run;
    int regions = 0;
    for (const PassProof& proof : run.proofs) regions += proof.regions;
    const std::string proof =
        run.proofs.empty() ? run.undone ? "FAIL" : "changed nothing"
                           : fmt::format("{}{} ({})", to_string(run.verdict),
                                         run.undone ? ", undone" : "", counted(regions, "region"));
    rows.push_back({std::string(run.pass->name), std::string(to_string(run.pass->exactness)),
                    counted(run.applied, "change"), proof, chosen.why});
  }
  return aligned(rows, "  ");
}

Json to_json(const ChosenPass& pass) {
  const PassRun& run = pass.run;
  Json out = {
      {"name", run.pass->name}, {"class", to_string(run.pass->exactness)}, {"why", pass.why},
      {"applied", run.applied}, {"skipped", run.skipped.size()},           {"undone", run.undone}};
  if (!run.problem.empty()) out["problem"] = run.problem;
  if (run.proofs.empty()) return out;
  out["verdict"] = to_string(run.verdict);
  out["proof"] = to_json(run.proofs.front());
  out["proof"].erase("seconds");  // the same again gives the same bytes
  return out;
}

}  // namespace tenonnx
