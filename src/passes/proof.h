// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The proof of a pass: every region that it changed (region_diff.h), old against new, on an
// executor, on tensors that were captured from real inputs and on inputs made for the region. What
// is demanded follows from the pass's class:
//
//   bitwise      every bit (every NaN counts as every other) on the executor that is named
//   algebraic    max abs error and relative L2 within kProofFactor x the noise floor of the old
//                region on the same data (proof_floor.h)
//   bounded      within the bound that the pass states
//   approximate  nothing can be proved here: the regions are counted, the task gate decides
//
// Inf or NaN where the old region is finite is a failure in every class. A region with sampling
// nodes is also run on coordinates that reach every case, and its taps are compared
// (proof_sampling.h): a wrong one is a failure of every class but approximate. A bounded pass may
// say up to which values its bound holds: real values beyond are a failure, made ones stay within.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "metrics/limit.h"
#include "model/model.h"
#include "ort/executor.h"
#include "passes/proof_sampling.h"
#include "passes/runner.h"
#include "tenonnx/base.h"

namespace tenonnx {

// The real inputs; loaded one at a time.
struct ProofData {
  std::size_t count = 0;
  std::function<Result<TensorMap>(std::size_t)> load;  // by the names of the model's inputs
  std::function<std::string(std::size_t)> name;
  std::string description;  // "2 images of 'held-out'"
};

struct ProofOptions {
  // Boundary tensors that are held at a time, up to 5 times (old, new, three disturbed). Each
  // window runs the graph again.
  std::int64_t window_bytes = 256 << 20;
  std::uint64_t seed = 1;
  int threads = 0;  // LoadOptions::intra_op_threads; class bitwise takes 1
  bool made_inputs = true;
  // A failing region is written to "<failures>/<pass>_<n>/"; empty: nowhere.
  std::filesystem::path failures;
};

// A region that did not pass, or could not be run.
struct RegionFailure {
  std::vector<std::string> before, after;  // labels of its nodes, at most kMaxLabels of each
  std::string input;                       // "image 'a.jpg'", "zeros (made)"
  Check check;
  std::filesystem::path minimal_case;  // the directory; empty where none was written
  static constexpr std::size_t kMaxLabels = 12;
};

struct PassProof {
  std::string pass;
  PassClass exactness = PassClass::kBitwise;
  Verdict verdict = Verdict::kInconclusive;
  std::string executor;     // "cpu (onnxruntime 1.29.0), optimisation disabled"
  int regions = 0;          // that the pass changed
  int distinct = 0;         // of different computation: made inputs are run once for each
  int captured_inputs = 0;  // real inputs on which every region ran
  int made_inputs = 0;      // runs of distinct regions on made inputs
  int with_context = 0;     // regions whose made inputs hold with the nodes before them only
  // The check with the largest value relative to its limit; of a failure that failure's.
  Check worst;
  std::vector<RegionFailure> failures;
  std::vector<SamplingProof> sampling;  // of the distinct regions that sampled before the pass
  std::vector<std::string> notes;
  double seconds = 0;
};

Json to_json(const PassProof& proof);

class PassProver {
 public:
  // `data` and `executor` must outlive it.
  PassProver(const Executor& executor, const ProofData& data, ProofOptions options);

  // Errors are for what prevents a judgement: the graph before the pass does not run. A graph after
  // it that does not run is a failure.
  Result<PassProof> prove(const PassInfo& pass, const Model& before, const Model& after,
                          const PassOutcome& outcome) const;

 private:
  const Executor& executor_;
  const ProofData& data_;
  ProofOptions options_;
};

}  // namespace tenonnx
