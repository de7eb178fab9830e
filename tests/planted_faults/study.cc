// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "study.h"

#include <onnx/onnx_pb.h>

#include <chrono>

#include "adapters/address.h"
#include "base/status.h"
#include "draws.h"
#include "flow/optimize.h"
#include "numerics/output_judge.h"
#include "ort/capture.h"

namespace tenonnx::planted {
namespace {

constexpr std::size_t kDraws = 40;  // of one kind, until the gate moves
constexpr const char* kSimulated = "sim:htp-v73";

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The suspect names the tensor that the faulty node makes, as the place of the error or of a value
// that does not fit. Where the candidate's graph has no such tensor any more, whoever reads it in
// the reference.
bool names(const Suspect& suspect, const std::string& tensor, bool removed,
           const GraphIndex& reference) {
  if (suspect.tensor == tensor || suspect.culprit_tensor == tensor) return true;
  const onnx::NodeProto* reader = removed ? reference.producer(suspect.tensor) : nullptr;
  return reader != nullptr &&
         std::find(reader->input().begin(), reader->input().end(), tensor) != reader->input().end();
}

}  // namespace

struct Study::Judged {
  CompareSetup setup;
  OutputJudge judge;
};

Result<std::unique_ptr<Study>> Study::open(const std::filesystem::path& model,
                                           std::vector<std::filesystem::path> images,
                                           std::filesystem::path work) {
  std::unique_ptr<Study> out(new Study(model));
  out->images_ = std::move(images);
  out->work_ = std::move(work);
  TENONNX_ASSIGN_OR_RETURN(Judged * first, out->judged(out->images_.front()));
  out->facts_ = std::make_unique<Facts>(first->setup.reference);
  out->facts_->find_computed();
  TENONNX_ASSIGN_OR_RETURN(const auto device, make_executor(kSimulated));
  out->versions_ = first->setup.ref->versions();
  for (const auto& entry : device->versions())
    if (std::find(out->versions_.begin(), out->versions_.end(), entry) == out->versions_.end())
      out->versions_.push_back(entry);
  return out;
}

LocateOptions Study::options(const std::filesystem::path& image, const std::string& device) const {
  LocateOptions out;
  out.common.reference = model_;
  out.common.on = device;
  out.common.images = image;
  out.common.cache = "none";
  // Threads that wait for each other cost more than they give on graphs this small.
  out.common.load.intra_op_threads = 1;
  out.max_cuts = 1;
  out.budget = 12;
  return out;
}

Result<Study::Judged*> Study::judged(const std::filesystem::path& image) {
  auto& entry = judged_[image.string()];
  if (!entry) {
    const LocateOptions made = options(image, "cpu");
    TENONNX_ASSIGN_OR_RETURN(CompareSetup setup, set_up_comparison(made.common));
    TENONNX_ASSIGN_OR_RETURN(OutputJudge judge, OutputJudge::make(setup, made.common.load, {}));
    if (!judge.has_task())
      return InvalidArgument("{}: there is no contract beside it, so there is no task gate to move",
                             model_.string());
    entry = std::make_shared<Judged>(Judged{std::move(setup), std::move(judge)});
  }
  return entry.get();
}

Result<bool> Study::moves(Judged& judged, const std::string& device, const std::string& tensor,
                          const Fault& fault) {
  TENONNX_ASSIGN_OR_RETURN(const auto executor, make_executor(device));
  Model changed = judged.setup.reference.clone();
  plant(changed, tensor, fault);
  LoadOptions load;
  load.intra_op_threads = 1;
  const auto graph = executor->load(changed, load);
  if (!graph.ok()) {
    fmt::print("  (does not load: {}: {})\n", fault.text, graph.status().message());
    return false;
  }
  const auto made = (*graph)->run(inputs_of(**graph, judged.judge.input(0).tensors));
  if (!made.ok()) {
    fmt::print("  (does not run: {}: {})\n", fault.text, made.status().message());
    return false;
  }
  TENONNX_ASSIGN_OR_RETURN(const OutputFigures figures, judged.judge.judge({0}, {*made}));
  return !figures.passes;
}

Result<std::optional<CaseRecord>> Study::run(const FaultClass& kind, bool in_executor,
                                             const std::string& device, Random& random) {
  std::vector<int> eligible;
  for (int n = 0; n < facts_->model.proto().graph().node_size(); ++n)
    if (facts_->node(n).output_size() > 0 && kind.eligible(*facts_, n)) eligible.push_back(n);
  if (eligible.empty()) return std::optional<CaseRecord>();
  const std::filesystem::path image = one_of(images_, random);
  TENONNX_ASSIGN_OR_RETURN(Judged * judged, this->judged(image));
  CaseRecord out;
  Fault fault;
  for (out.draws = 1; out.draws <= kDraws; ++out.draws) {
    const int n = one_of(eligible, random);
    fault = kind.draw(*facts_, n, random);
    out.node = node_label(facts_->node(n));
    out.tensor = facts_->node(n).output(0);
    TENONNX_ASSIGN_OR_RETURN(const bool moved, moves(*judged, device, out.tensor, fault));
    if (moved) break;
  }
  if (out.draws > kDraws) return std::optional<CaseRecord>();
  out.model = model_.stem().string();
  out.kind = kind.name;
  out.where = in_executor ? "executor" : "graph";
  out.device = device;
  out.text = fault.text;

  LocateOptions made = options(image, device);
  if (!in_executor) {
    Model changed = judged->setup.reference.clone();
    plant(changed, out.tensor, fault);
    made.common.candidate = work_ / "candidate.onnx";
    TENONNX_RETURN_IF_ERROR(changed.save(made.common.candidate));
  }
  const auto begin = std::chrono::steady_clock::now();
  TENONNX_ASSIGN_OR_RETURN(CompareSetup setup, set_up_comparison(made.common));
  if (in_executor) setup.on = make_faulty(std::move(setup.on), out.tensor, fault);
  const auto located = locate(made, setup);
  out.seconds = seconds_since(begin);
  if (!located.ok()) {
    out.error = located.status().message();
    return std::optional<CaseRecord>(std::move(out));
  }
  out.verdict = to_string(located->verdict);
  out.headline = located->headline;
  const bool removed = fault.removes_tensor && !in_executor;
  for (std::size_t i = 0; i < located->suspects.size() && i < kNamed && out.rank == 0; ++i) {
    const Suspect& suspect = located->suspects[i];
    if (!names(suspect, out.tensor, removed, facts_->index)) continue;
    out.rank = i + 1;
    out.answer = fmt::format("{}: {}", to_string(suspect.kind.kind), suspect.kind.text);
    out.kind_found = kind.named.contains(suspect.kind.kind);
  }
  return std::optional<CaseRecord>(std::move(out));
}

Result<CaseRecord> Study::run_copy(Random& random) {
  CaseRecord out;
  out.model = model_.stem().string();
  out.kind = kCopyOfReference;
  out.where = "executor";
  out.device = kSimulated;
  const bool optimised = random() % 2 == 0;
  out.text = optimised ? "the reference with fusions" : "the reference itself";
  const LocateOptions made = options(one_of(images_, random), kSimulated);
  const auto begin = std::chrono::steady_clock::now();
  TENONNX_ASSIGN_OR_RETURN(CompareSetup setup, set_up_comparison(made.common));
  setup.on = make_copy(kSimulated, optimised);
  const auto located = locate(made, setup);
  out.seconds = seconds_since(begin);
  if (!located.ok()) {
    out.error = located.status().message();
    return out;
  }
  out.verdict = to_string(located->verdict);
  out.headline = located->headline;
  if (!located->suspects.empty()) {
    const Suspect& first = located->suspects.front();
    out.answer = fmt::format("{}: {}", to_string(first.kind.kind), first.kind.text);
    out.kind_found = first.kind.kind == FaultKind::kCopy;
    out.rank = out.kind_found ? 1 : 0;  // the executor as a whole
  }
  return out;
}

// The model after every pass of `optimize`.
Result<std::string> Study::optimised() {
  const std::filesystem::path out = work_ / (model_.stem().string() + "_optimised.onnx");
  if (std::filesystem::exists(out)) return out.string();
  OptimizeOptions options;
  options.model = model_;
  options.out = out;
  options.proof = ProofLevel::kNone;
  TENONNX_RETURN_IF_ERROR(optimize_file(options).status());
  return out.string();
}

Result<HealthyRecord> Study::run_healthy(std::size_t which, Random& random) {
  struct Form {
    const char* text;
    const char* device;
    bool passes;
    Optimization level;
  };
  static constexpr Form kForms[] = {
      {"", kSimulated, false, Optimization::kAll},
      {", every optimisation", "cpu", false, Optimization::kAll},
      {", optimised by passes", "cpu", true, Optimization::kAll},
      {", optimised by passes", kSimulated, true, Optimization::kAll},
      {", optimisation disabled", "cpu", false, Optimization::kDisabled},
      {", basic optimisation", "cpu", false, Optimization::kBasic},
      {", extended optimisation, 2 threads", "cpu", false, Optimization::kExtended},
  };
  const Form& form = kForms[which % std::size(kForms)];
  HealthyRecord out;
  out.model = model_.stem().string();
  out.text = std::string(form.device) + form.text;
  LocateOptions made = options(one_of(images_, random), form.device);
  made.common.load.optimization = form.level;
  if (form.level == Optimization::kExtended) made.common.load.intra_op_threads = 2;
  if (form.passes) {
    TENONNX_ASSIGN_OR_RETURN(made.common.candidate, optimised());
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto located = locate(made);
  out.seconds = seconds_since(begin);
  if (located.ok()) {
    out.verdict = to_string(located->verdict);
    out.headline = located->headline;
  } else {
    out.error = located.status().message();
  }
  return out;
}

}  // namespace tenonnx::planted
