// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/status.h"
#include "model/grid_sample_modes.h"
#include "ort/capture.h"
#include "passes/fold_rules.h"
#include "passes/proof_floor.h"
#include "passes/proof_inputs.h"
#include "passes/proof_judge.h"
#include "passes/proof_run.h"
#include "passes/proof_shares.h"

namespace tenonnx {
namespace {

constexpr std::int64_t kUnknownBytes = 1 << 20;
// Of a larger region (the whole graph, say) only normal values are made: what wide ones would
// select in its TopK is no question of the pass.
constexpr std::size_t kSmallRegion = 200;

PassProof unproved(const PassInfo& pass, std::string why) {
  PassProof proof;
  proof.pass = pass.name;
  proof.exactness = pass.exactness;
  proof.worst = inconclusive_check("regions", std::move(why));
  return proof;
}

TensorMap inputs_only(std::span<const ChangedRegion* const> regions, const TensorMap& values) {
  TensorMap out = region_inputs(Side::kBefore, regions, values);
  out.merge(region_inputs(Side::kAfter, regions, values));
  return out;
}

}  // namespace

ProofRun::ProofRun(const Executor& executor, const ProofData& data, const ProofOptions& options,
                   const PassInfo& pass, const Model& before, const Model& after,
                   const PassOutcome& outcome)
    : executor_(executor),
      data_(data),
      options_(options),
      pass_(pass),
      before_(before),
      after_(after),
      outcome_(outcome),
      before_index_(before.proto().graph()),
      after_index_(after.proto().graph()) {
  result_.pass = pass.name;
  result_.exactness = pass.exactness;
  std::string versions;
  for (const auto& [name, version] : executor.versions())
    versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", name, version);
  result_.executor = fmt::format("{} ({}), optimisation disabled", executor.address(), versions);
}

Result<PassProof> ProofRun::run() {
  auto diff = diff_graphs(before_, after_, outcome_.renamed, pass_.name);
  if (!diff.ok()) {
    fail({}, {},
         make_check("names", 1, Comparison::kAtMost, {0, "what every pass promises"},
                    diff.status().message()),
         "");
    result_.verdict = Verdict::kFail;
    return std::move(result_);
  }
  diff_ = std::move(diff).value();
  result_.regions = static_cast<int>(diff_.regions.size());
  if (pass_.exactness == PassClass::kApproximate) {
    result_.worst = inconclusive_check("another model", "needs the task gate");
    if (data_.count > 0) TENONNX_RETURN_IF_ERROR(describe_sampling());
    TENONNX_ASSIGN_OR_RETURN(result_.notes,
                             kept_shares(executor_, threads(), before_, after_, data_));
    return std::move(result_);
  }
  if (pass_.exactness == PassClass::kBounded && !outcome_.bound && !diff_.regions.empty()) {
    result_.worst = inconclusive_check("bound", "the pass is bounded and states no bound");
    return std::move(result_);
  }
  if (diff_.regions.empty()) {
    result_.worst = make_check("changed regions", 0, Comparison::kAtMost, {0, "nothing to prove"});
    result_.verdict = Verdict::kPass;
    return std::move(result_);
  }
  if (data_.count == 0) {
    result_.worst = inconclusive_check("regions", "there are no inputs to prove them on");
    return std::move(result_);
  }
  infos_ = infer_shapes(before_);
  std::vector<const ChangedRegion*> regions;
  std::vector<std::int64_t> bytes;
  for (const ChangedRegion& region : diff_.regions) {
    const std::int64_t size = region_bytes(region);
    if (size < 0) continue;
    regions.push_back(&region);
    bytes.push_back(size);
  }
  std::size_t done = 0;
  for (const Window& window : plan_windows(bytes, options_.window_bytes)) {
    const std::vector<const ChangedRegion*> some(
        regions.begin() + static_cast<std::ptrdiff_t>(window.begin),
        regions.begin() + static_cast<std::ptrdiff_t>(window.end));
    TENONNX_RETURN_IF_ERROR(prove_window(some));
    done += some.size();
  }
  result_.captured_inputs = static_cast<int>(data_.count);
  const bool all = done == diff_.regions.size();
  if (!result_.failures.empty())
    result_.verdict = Verdict::kFail;
  else
    result_.verdict = all && ran_ ? Verdict::kPass : Verdict::kInconclusive;
  return std::move(result_);
}

std::int64_t ProofRun::region_bytes(const ChangedRegion& region) {
  std::int64_t sum = 0;
  for (const auto* list : {&region.inputs, &region.outputs}) {
    for (const RegionTensor& tensor : *list) {
      const auto info = infos_.find(tensor.before);
      if (info == infos_.end() || info->second.dtype == DType::kUndefined) {
        result_.notes.push_back(fmt::format(
            "a region was not run: '{}' is of no dtype that can be taken", tensor.before));
        return -1;
      }
      const std::int64_t count = info->second.has_rank ? element_count(info->second.shape) : -1;
      sum += count < 0 ? kUnknownBytes
                       : count * static_cast<std::int64_t>(size_of(info->second.dtype));
    }
  }
  return sum;
}

Status ProofRun::prove_window(const std::vector<const ChangedRegion*>& regions) {
  BoundaryCapture capture = capture_of(regions);
  RegionSessions sessions = sessions_of(regions);
  for (std::size_t k = 0; k < data_.count; ++k) {
    TENONNX_ASSIGN_OR_RETURN(const TensorMap real, data_.load(k));
    TENONNX_ASSIGN_OR_RETURN(const TensorMap values, capture.take(real));
    const std::string where = fmt::format("'{}'", data_.name ? data_.name(k) : "input");
    TENONNX_RETURN_IF_ERROR(check(sessions, values, where, false));
    if (k > 0) continue;
    std::vector<const ChangedRegion*> distinct;
    for (const ChangedRegion* region : regions)
      if (is_first_of_its_kind(*region, values)) distinct.push_back(region);
    result_.distinct += static_cast<int>(distinct.size());
    if (!options_.made_inputs) continue;
    TENONNX_RETURN_IF_ERROR(check_made(distinct, values));
    for (const ChangedRegion* region : distinct) {
      TENONNX_ASSIGN_OR_RETURN(const bool all, check_sampling(*region, values));
      static_cast<void>(all);
    }
  }
  return {};
}

BoundaryCapture ProofRun::capture_of(std::span<const ChangedRegion* const> regions) const {
  return {executor_, threads(), before_, before_index_, infos_, regions};
}

// Kernels split a tensor among threads, and the ends of the parts take another path than their
// middle: with two threads 1 of 34,000 logarithms differs from those of one. Constants are
// folded with one, so that a graph is the same wherever it was folded.
int ProofRun::threads() const {
  return pass_.exactness == PassClass::kBitwise ? 1 : options_.threads;
}

RegionSessions ProofRun::sessions_of(std::vector<const ChangedRegion*> regions) const {
  return {executor_, threads(), options_.seed, before_, after_, std::move(regions)};
}

bool ProofRun::is_constant(const RegionTensor& input) const {
  const auto constant = [](const Value* value) {
    return value != nullptr && value->is_initializer();
  };
  return constant(before_index_.find(input.before)) || constant(after_index_.find(input.after)) ||
         follows_from_constants(input.before);
}

// What a graph computes of its constants alone is no more an input than these: a grid of learned
// queries behind a whole self-attention, say, which a pass may have computed.
bool ProofRun::follows_from_constants(const std::string& name) const {
  if (!constant_tensors_) {
    constant_tensors_.emplace();
    for (const Value& value : before_index_.values())
      if (value.is_initializer() && !value.is_input) constant_tensors_->insert(value.name);
    for (const onnx::NodeProto& node : before_.proto().graph().node()) {
      const auto inputs = all_inputs(node);
      if (never_folded(node) || !std::all_of(inputs.begin(), inputs.end(), [&](auto input) {
            return constant_tensors_->contains(input);
          }))
        continue;
      constant_tensors_->insert(node.output().begin(), node.output().end());
    }
  }
  return constant_tensors_->contains(name);
}

std::set<std::string> ProofRun::kept_inputs(std::span<const ChangedRegion* const> regions) const {
  std::set<std::string> kept;
  for (const ChangedRegion* region : regions)
    for (const RegionTensor& input : region->inputs)
      if (is_constant(input)) kept.insert(input.before);
  return kept;
}

bool ProofRun::is_first_of_its_kind(const ChangedRegion& region, const TensorMap& values) {
  return signatures_
      .insert(region_signature(before_, before_index_, after_, after_index_, region, values))
      .second;
}

Status ProofRun::check_made(const std::vector<const ChangedRegion*>& all, const TensorMap& values) {
  std::vector<const ChangedRegion*> regions;
  for (const ChangedRegion* region : all)
    if (!failed_.contains(region) && !region->inputs.empty()) regions.push_back(region);
  if (regions.empty()) return {};
  std::vector<const ChangedRegion*> small;
  for (const ChangedRegion* region : regions)
    if (region->before.size() + region->after.size() <= kSmallRegion) small.push_back(region);
  RegionSessions all_sessions = sessions_of(regions);
  RegionSessions small_sessions = sessions_of(small);
  for (const MadeCase made : all_made_cases()) {
    RegionSessions& sessions = made == MadeCase::kNormal ? all_sessions : small_sessions;
    if (sessions.regions().empty()) continue;
    TensorMap inputs = make_inputs(made, inputs_only(sessions.regions(), values),
                                   kept_inputs(sessions.regions()), options_.seed);
    keep_within(inputs);
    TENONNX_RETURN_IF_ERROR(
        check(sessions, inputs, fmt::format("{} (made)", to_string(made)), true));
  }
  return {};
}

void ProofRun::keep_within(TensorMap& values) const {
  for (const auto& [name, most] : outcome_.holds_within) {
    const auto it = values.find(name);
    if (it == values.end()) continue;
    std::vector<double> kept = to_doubles(it->second);
    for (double& value : kept) value = std::clamp(value, -most, most);
    it->second = finite_tensor(it->second.dtype(), it->second.shape(), kept);
  }
}

std::optional<Check> ProofRun::beyond_premise(const ChangedRegion& region,
                                              const TensorMap& values) const {
  for (const RegionTensor& input : region.inputs) {
    const auto most = outcome_.holds_within.find(input.before);
    const auto value = values.find(input.before);
    if (most == outcome_.holds_within.end() || value == values.end()) continue;
    double largest = 0;
    for (const double v : to_doubles(value->second))
      if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
    if (largest > most->second)
      return make_check(
          input.before + ": largest magnitude", largest, Comparison::kAtMost,
          {most->second, "up to which the pass's bound holds: give it a larger range"});
  }
  return std::nullopt;
}

std::vector<TensorMap> ProofRun::disturbed_runs(RegionSessions& sessions,
                                                const TensorMap& values) const {
  std::vector<TensorMap> runs;
  if (pass_.exactness != PassClass::kAlgebraic) return runs;
  const auto add = [&](RegionForm form, const TensorMap& inputs) {
    auto run = sessions.run(form, inputs);
    if (run.ok()) runs.push_back(std::move(run).value());
  };
  const TensorMap inputs = inputs_only(sessions.regions(), values);
  add(RegionForm::kBeforeDisturbed, disturb(inputs, options_.seed + 1));
  add(RegionForm::kBefore, disturb(inputs, options_.seed + 1'000'000));
  add(RegionForm::kBeforeOptimized, inputs);
  return runs;
}

Status ProofRun::check(RegionSessions& sessions, const TensorMap& values, const std::string& where,
                       bool made) {
  const auto& regions = sessions.regions();
  const auto halves = [&]() -> Status {
    const auto middle = regions.begin() + static_cast<std::ptrdiff_t>(regions.size() / 2);
    RegionSessions first = sessions_of({regions.begin(), middle});
    RegionSessions second = sessions_of({middle, regions.end()});
    TENONNX_RETURN_IF_ERROR(check(first, values, where, made));
    return check(second, values, where, made);
  };
  TensorMap reference;
  if (made) {
    auto run = sessions.run(RegionForm::kBefore, values);
    if (!run.ok() && regions.size() > 1) return halves();
    if (!run.ok()) return {};  // inputs that the old region does not take prove nothing
    reference = std::move(run).value();
  } else {
    for (std::size_t r = 0; r < regions.size(); ++r)
      for (std::size_t o = 0; o < regions[r]->outputs.size(); ++o)
        if (const auto it = values.find(regions[r]->outputs[o].before); it != values.end())
          reference.insert_or_assign(sessions.outputs()[r][o], it->second);
  }
  const auto after = sessions.run(RegionForm::kAfter, values);
  if (!after.ok() && regions.size() > 1) return halves();
  if (!after.ok()) {
    ran_ = true;
    report(*regions[0],
           make_check("runs", 1, Comparison::kAtMost, {0, "the old region does"},
                      after.status().message()),
           where, values, reference, sessions.outputs()[0], made);
    return {};
  }
  const std::vector<TensorMap> disturbed = disturbed_runs(sessions, values);
  for (std::size_t r = 0; r < regions.size(); ++r) {
    if (failed_.contains(regions[r])) continue;
    if (const auto beyond = made ? std::nullopt : beyond_premise(*regions[r], values)) {
      ran_ = true;
      report(*regions[r], *beyond, where, values, reference, sessions.outputs()[r], made);
      continue;
    }
    const JudgedRegion judged = judge_region(pass_.exactness, outcome_.bound, *regions[r],
                                             sessions.outputs()[r], reference, *after, disturbed);
    ran_ = true;
    if (made) ++result_.made_inputs;
    if (judged.failed)
      report(*regions[r], judged.worst, where, values, reference, sessions.outputs()[r], made);
    else
      note_worst(judged.worst);
  }
  return {};
}

void ProofRun::note_worst(const Check& check) {
  if (result_.worst.name.empty() || severity(check) > severity(result_.worst))
    result_.worst = check;
}

PassProver::PassProver(const Executor& executor, const ProofData& data, ProofOptions options)
    : executor_(executor), data_(data), options_(std::move(options)) {}

Result<PassProof> PassProver::prove(const PassInfo& pass, const Model& before, const Model& after,
                                    const PassOutcome& outcome) const {
  const auto start = std::chrono::steady_clock::now();
  auto ran = ProofRun(executor_, data_, options_, pass, before, after, outcome).run();
  if (!ran.ok()) {
    // What mends such a model must be possible, though there is nothing to compare it with.
    const auto misspelled = misspelled_mode(before);
    if (!misspelled || misspelled_mode(after)) return ran.status();
    ran = unproved(
        pass, fmt::format("the graph before does not load in ONNX Runtime: {}", misspelled->what));
  }
  PassProof proof = std::move(ran).value();
  proof.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return proof;
}

}  // namespace tenonnx
