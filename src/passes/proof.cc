// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <span>
#include <unordered_set>

#include "base/status.h"
#include "model/graph.h"
#include "model/shapes.h"
#include "ort/capture.h"
#include "passes/proof_capture.h"
#include "passes/proof_floor.h"
#include "passes/proof_inputs.h"
#include "passes/proof_judge.h"
#include "passes/proof_shares.h"
#include "passes/region_diff.h"
#include "passes/region_sessions.h"

namespace tenonnx {
namespace {

constexpr std::int64_t kUnknownBytes = 1 << 20;
// Steps towards the inputs of the graph, and nodes of a region with its context. An attention block
// has some 40 nodes.
constexpr int kMostSteps = 8;
constexpr std::size_t kMostContext = 200;
// Of a larger region (the whole graph, say) only normal values are made: what wide ones would
// select in its TopK is no question of the pass.
constexpr std::size_t kSmallRegion = 200;
// A pass with so many failing regions is wrong; no context will save it.
constexpr std::size_t kMostFailures = 8;

class Proof {
 public:
  Proof(const Executor& executor, const ProofData& data, const ProofOptions& options,
        const PassInfo& pass, const Model& before, const Model& after, const PassOutcome& outcome)
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

  Result<PassProof> run() {
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
      result_.worst =
          make_check("changed regions", 0, Comparison::kAtMost, {0, "nothing to prove"});
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

 private:
  // -1 where a boundary tensor is of no dtype that can be taken (a sequence, strings).
  std::int64_t region_bytes(const ChangedRegion& region) {
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

  Status prove_window(const std::vector<const ChangedRegion*>& regions) {
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
        if (signatures_
                .insert(
                    region_signature(before_, before_index_, after_, after_index_, *region, values))
                .second)
          distinct.push_back(region);
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

  BoundaryCapture capture_of(std::span<const ChangedRegion* const> regions) const {
    return {executor_, threads(), before_, before_index_, infos_, regions};
  }

  // Kernels split a tensor among threads, and the ends of the parts take another path than their
  // middle: with two threads 1 of 34,000 logarithms differs from those of one. Constants are
  // folded with one, so that a graph is the same wherever it was folded.
  int threads() const { return pass_.exactness == PassClass::kBitwise ? 1 : options_.threads; }

  RegionSessions sessions_of(std::vector<const ChangedRegion*> regions) const {
    return {executor_, threads(), options_.seed, before_, after_, std::move(regions)};
  }

  // What a pass has found to be constant is no free input of the region.
  std::set<std::string> kept_inputs(std::span<const ChangedRegion* const> regions) const {
    const auto constant = [](const Value* value) {
      return value != nullptr && value->is_initializer();
    };
    std::set<std::string> kept;
    for (const ChangedRegion* region : regions)
      for (const RegionTensor& input : region->inputs)
        if (constant(before_index_.find(input.before)) || constant(after_index_.find(input.after)))
          kept.insert(input.before);
    return kept;
  }

  static TensorMap inputs_only(std::span<const ChangedRegion* const> regions,
                               const TensorMap& values) {
    TensorMap out = region_inputs(Side::kBefore, regions, values);
    out.merge(region_inputs(Side::kAfter, regions, values));
    return out;
  }

  Status check_made(const std::vector<const ChangedRegion*>& all, const TensorMap& values) {
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
      const TensorMap inputs = make_inputs(made, inputs_only(sessions.regions(), values),
                                           kept_inputs(sessions.regions()), options_.seed);
      TENONNX_RETURN_IF_ERROR(
          check(sessions, inputs, fmt::format("{} (made)", to_string(made)), true));
    }
    return {};
  }

  // On coordinates that reach every case of the sampling nodes. False where they do not reach all.
  Result<bool> check_sampling(const ChangedRegion& region, const TensorMap& values) {
    const ChangedRegion* const one[] = {&region};
    const std::set<std::string> kept = kept_inputs(one);
    SamplingRegion sampling(executor_, threads(), options_.seed, before_, after_, region, values,
                            kept);
    if (!sampling.samples()) return false;
    TENONNX_RETURN_IF_ERROR(sampling.prepare());
    sampling_ = true;
    if (pass_.exactness != PassClass::kApproximate) {
      RegionSessions sessions = sessions_of({&region});
      for (const SamplingInputs& made : sampling.made())
        TENONNX_RETURN_IF_ERROR(check(sessions, made.values, made.name + " (made)", true));
    }
    if (!growing_) {
      TENONNX_ASSIGN_OR_RETURN(SamplingProof proof, sampling.report(pass_.exactness));
      // Where one form takes a tensor that the other computes, the two agree only further up: taps
      // that differ on made inputs say nothing, and the values above have been judged there.
      const bool one_sided =
          std::any_of(region.inputs.begin(), region.inputs.end(),
                      [](const RegionTensor& input) { return input.in_before != input.in_after; });
      if (sampling.failure() && one_sided) {
        sampling_ = false;
        return sampling.reaches_all();
      }
      result_.sampling.push_back(std::move(proof));
      if (sampling.failure()) {
        RegionSessions sessions = sessions_of({&region});
        const TensorMap& inputs = sampling.failing()->values;
        auto reference = sessions.run(RegionForm::kBefore, inputs);
        report(region, *sampling.failure(), sampling.failing()->name, inputs,
               reference.ok() ? *reference : TensorMap(), sessions.outputs()[0], false);
      }
    }
    sampling_ = false;
    return sampling.reaches_all();
  }

  // Of an approximate pass nothing is judged, but which taps moved is worth knowing.
  Status describe_sampling() {
    infos_ = infer_shapes(before_);
    std::vector<const ChangedRegion*> regions;
    for (const ChangedRegion& region : diff_.regions)
      if (region_bytes(region) >= 0 && !sampling_nodes(before_, region.before).empty())
        regions.push_back(&region);
    if (regions.empty()) return {};
    TENONNX_ASSIGN_OR_RETURN(const TensorMap real, data_.load(0));
    for (const ChangedRegion* region : regions) {
      const ChangedRegion* const one[] = {region};
      TENONNX_ASSIGN_OR_RETURN(const TensorMap values, capture_of(one).take(real));
      if (!signatures_
               .insert(
                   region_signature(before_, before_index_, after_, after_index_, *region, values))
               .second)
        continue;
      TENONNX_ASSIGN_OR_RETURN(const bool all, check_sampling(*region, values));
      static_cast<void>(all);
    }
    return {};
  }

  // What the old regions give under the smallest disturbances.
  std::vector<TensorMap> disturbed_runs(RegionSessions& sessions, const TensorMap& values) const {
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

  // `values` holds the inputs and, where they were captured, the outputs.
  Status check(RegionSessions& sessions, const TensorMap& values, const std::string& where,
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

  void note_worst(const Check& check) {
    if (result_.worst.name.empty() || severity(check) > severity(result_.worst))
      result_.worst = check;
  }

  std::string label(const ChangedRegion& region) const {
    if (!region.before.empty())
      return node_label(before_.proto().graph().node(region.before.back()));
    if (!region.after.empty()) return node_label(after_.proto().graph().node(region.after.back()));
    return fmt::format("'{}'", region.outputs.front().before);
  }

  // A region failed on some input.
  void report(const ChangedRegion& region, const Check& check, const std::string& where,
              const TensorMap& values, const TensorMap& reference,
              const std::vector<std::string>& outputs, bool made) {
    if (growing_) {
      grown_failed_ = true;
      return;
    }
    if (failed_.contains(&region)) return;
    if (made && result_.failures.size() < kMostFailures && holds_with_context(region)) {
      if (held_.insert(&region).second) ++result_.with_context;
      return;
    }
    failed_.insert(&region);
    std::filesystem::path directory;
    if (!options_.failures.empty() && result_.failures.size() < kMostFailures) {
      directory = options_.failures / fmt::format("{}_{}", pass_.name, result_.failures.size());
      const ChangedRegion* const one[] = {&region};
      const RegionNames names(one);
      TensorMap expected;
      // Alone the region may have other names of outputs than among others.
      for (std::size_t o = 0; o < outputs.size(); ++o)
        if (const auto it = reference.find(outputs[o]); it != reference.end())
          expected.emplace(names.outputs[0][o], it->second);
      const Status status = write_minimal_case(
          directory,
          fmt::format("Pass {} ({}), region around {}, on {}:\n{}", pass_.name,
                      to_string(pass_.exactness), label(region), where, to_text(check)),
          before_, after_, region, values, expected);
      if (!status.ok()) {
        result_.notes.push_back("no minimal case was written: " + status.message());
        directory.clear();
      }
    }
    const auto labels = [](const onnx::GraphProto& graph, const std::vector<int>& nodes) {
      std::vector<std::string> out;
      for (const int i : nodes) {
        if (out.size() == RegionFailure::kMaxLabels) break;
        out.push_back(node_label(graph.node(i)));
      }
      return out;
    };
    fail(labels(before_.proto().graph(), region.before),
         labels(after_.proto().graph(), region.after), check, where);
    result_.failures.back().minimal_case = directory;
  }

  void fail(std::vector<std::string> before, std::vector<std::string> after, const Check& check,
            const std::string& where) {
    result_.failures.push_back({std::move(before), std::move(after), where, check, {}});
    if (result_.failures.size() == 1) result_.worst = check;
  }

  // A change may rest on what the nodes before it can give (no negative values behind a Relu, one
  // tensor that is another's copy). The made inputs go in further up then.
  bool holds_with_context(const ChangedRegion& region) {
    const bool sampling = sampling_;  // on such coordinates it failed: on such it must hold
    if (!sampling && held_.contains(&region)) return true;
    ChangedRegion grown = region;
    for (int step = 0; step < kMostSteps; ++step) {
      if (!grow_region(before_, after_, diff_, outcome_.renamed, grown)) return false;
      if (grown.before.size() + grown.after.size() > kMostContext) return false;
      const ChangedRegion* const one[] = {&grown};
      BoundaryCapture capture = capture_of(one);
      const auto real = data_.load(0);
      if (!real.ok()) return false;
      const auto values = capture.take(*real);
      if (!values.ok()) return false;
      growing_ = true;
      grown_failed_ = false;
      const PassProof kept = result_;
      const bool ran = check_made({&grown}, *values).ok();
      const bool ran_any = result_.made_inputs > kept.made_inputs;
      bool reached = true;
      if (sampling) {
        const auto all = check_sampling(grown, *values);
        reached = all.ok() && *all;
        sampling_ = true;
      }
      result_ = kept;
      growing_ = false;
      if (ran && ran_any && reached && !grown_failed_) return true;
    }
    return false;
  }

  const Executor& executor_;
  const ProofData& data_;
  const ProofOptions& options_;
  const PassInfo& pass_;
  const Model& before_;
  const Model& after_;
  const PassOutcome& outcome_;
  const GraphIndex before_index_, after_index_;
  GraphDiff diff_;
  TensorInfos infos_;
  PassProof result_;
  std::set<std::string> signatures_;
  std::unordered_set<const ChangedRegion*> failed_, held_;
  bool ran_ = false, growing_ = false, grown_failed_ = false, sampling_ = false;
};

}  // namespace

PassProver::PassProver(const Executor& executor, const ProofData& data, ProofOptions options)
    : executor_(executor), data_(data), options_(std::move(options)) {}

Result<PassProof> PassProver::prove(const PassInfo& pass, const Model& before, const Model& after,
                                    const PassOutcome& outcome) const {
  const auto start = std::chrono::steady_clock::now();
  TENONNX_ASSIGN_OR_RETURN(PassProof proof,
                           Proof(executor_, data_, options_, pass, before, after, outcome).run());
  proof.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return proof;
}

}  // namespace tenonnx
