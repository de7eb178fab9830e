// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// One proof as it runs (proof.h): what it has captured and judged so far. proof.cc has the order of
// things and the judgement of regions, proof_run_sampling.cc what regions with sampling nodes get
// beside that, proof_run_failures.cc what becomes of a region that fails.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/graph.h"
#include "model/shapes.h"
#include "passes/proof.h"
#include "passes/proof_capture.h"
#include "passes/region_diff.h"
#include "passes/region_sessions.h"

namespace tenonnx {

class ProofRun {
 public:
  // Everything must outlive it.
  ProofRun(const Executor& executor, const ProofData& data, const ProofOptions& options,
           const PassInfo& pass, const Model& before, const Model& after,
           const PassOutcome& outcome);

  // Once.
  Result<PassProof> run();

 private:
  // -1 where a boundary tensor is of no dtype that can be taken (a sequence, strings).
  std::int64_t region_bytes(const ChangedRegion& region);
  Status prove_window(const std::vector<const ChangedRegion*>& regions);
  int threads() const;
  BoundaryCapture capture_of(std::span<const ChangedRegion* const> regions) const;
  RegionSessions sessions_of(std::vector<const ChangedRegion*> regions) const;
  // What a pass has found to be constant is no free input of the region.
  std::set<std::string> kept_inputs(std::span<const ChangedRegion* const> regions) const;
  bool is_constant(const RegionTensor& input) const;
  bool follows_from_constants(const std::string& name) const;
  // False where a region of the same computation was proved already.
  bool is_first_of_its_kind(const ChangedRegion& region, const TensorMap& values);

  Status check_made(const std::vector<const ChangedRegion*>& all, const TensorMap& values);
  // Made values stay where the pass says that its bound holds.
  void keep_within(TensorMap& values) const;
  // What is wrong with real values in that respect.
  std::optional<Check> beyond_premise(const ChangedRegion& region, const TensorMap& values) const;
  // `values` holds the inputs and, where they were captured, the outputs.
  Status check(RegionSessions& sessions, const TensorMap& values, const std::string& where,
               bool made);
  // What the old regions give under the smallest disturbances.
  std::vector<TensorMap> disturbed_runs(RegionSessions& sessions, const TensorMap& values) const;
  void note_worst(const Check& check);

  // On coordinates that reach every case of the sampling nodes. False where they do not reach all.
  Result<bool> check_sampling(const ChangedRegion& region, const TensorMap& values);
  // One form takes a tensor that the other computes: on free values the two agree only further up.
  bool one_sided(const ChangedRegion& region) const;
  struct Grown {
    const ChangedRegion* region;
    TensorMap values;
  };
  // The region with so many nodes before it that it is not one-sided any more.
  Result<std::optional<Grown>> two_sided(const ChangedRegion& region);
  // What was found about its nodes, and a failure where a tap is wrong.
  Status report_sampling(SamplingRegion& sampling, const ChangedRegion& region);
  // Of an approximate pass nothing is judged, but which taps moved is worth knowing.
  Status describe_sampling();

  std::string label(const ChangedRegion& region) const;
  // A region failed on some input.
  void report(const ChangedRegion& region, const Check& check, const std::string& where,
              const TensorMap& values, const TensorMap& reference,
              const std::vector<std::string>& outputs, bool made);
  void fail(std::vector<std::string> before, std::vector<std::string> after, const Check& check,
            const std::string& where);
  // A change may rest on what the nodes before it can give (no negative values behind a Relu, one
  // tensor that is another's copy). The made inputs go in further up then.
  bool holds_with_context(const ChangedRegion& region);
  // One step towards the inputs of the graph; false at its end, or where the region grows too
  // large.
  bool grow(ChangedRegion& region) const;

  const Executor& executor_;
  const ProofData& data_;
  const ProofOptions& options_;
  const PassInfo& pass_;
  const Model& before_;
  const Model& after_;
  const PassOutcome& outcome_;
  const GraphIndex before_index_, after_index_;
  // Of the graph before; made when it is first asked for.
  mutable std::optional<std::unordered_set<std::string_view>> constant_tensors_;
  GraphDiff diff_;
  TensorInfos infos_;
  PassProof result_;
  std::set<std::string> signatures_;
  std::deque<ChangedRegion> grown_;  // by two_sided()
  std::unordered_set<const ChangedRegion*> failed_, held_;
  bool ran_ = false, growing_ = false, grown_failed_ = false, sampling_ = false;
};

// Steps towards the inputs of the graph.
inline constexpr int kMostProofSteps = 8;

}  // namespace tenonnx
