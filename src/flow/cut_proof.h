// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The graph level: does the cut alone change what the model computes? The whole model on the cpu
// against its parts on the cpu, one input at a time.
//
//   identical element by element at the default optimisation level          -> the cut is right
//   identical with optimisation disabled, and at the default level within
//   the noise floor between the two levels                                  -> right; a fusion
//                                                                              crosses the cut
//   anything else                                                           -> the cut is wrong
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "flow/comparison.h"
#include "metrics/noise_floor.h"
#include "passes/proof_floor.h"

namespace tenonnx {

// Times what disabling optimisation changes: a fusion that the cut prevents is a part of that, and
// what follows sums in another order. Both are single samples of rounding, as the floors of proofs
// are, and take their factor: with 2, a right cut (every bit the same with optimisation disabled)
// of the example failed by 3.19e-6 over 3.16e-6.
inline constexpr double kFusionFactor = kProofFactor;

class CutProof {
 public:
  using Run = std::function<Result<Observation>(const ReferenceInput&)>;  // detections included

  // `title`: "cut", or "prepared graph" where nothing is cut. The two runs are with optimisation
  // disabled; they are called only after a difference.
  CutProof(std::string title, const Contract& contract, Run whole_disabled, Run parts_disabled);

  // Both at the default level. Errors only where a run fails.
  Status add(const ReferenceInput& input, const Observation& whole, const Observation& parts);

  bool fusion_crosses() const { return explained_inputs_ > 0; }
  std::vector<Check> checks() const;
  Verdict verdict() const;

 private:
  Status explain(const ReferenceInput& input, const Observation& whole, const Observation& parts);
  // Elements that differ over all outputs, and in which tensor first.
  struct Difference {
    std::int64_t elements = 0;
    std::string first;
    void add(const Difference& other);
  };
  static Difference differing(const TensorMap& a, const TensorMap& b);
  // Whether row i of this output is the same thing on both sides (not so for what TopK selected).
  bool rows_correspond(const std::string& output) const;

  struct Level {
    NoiseFloor floor;    // the whole model at the two levels
    double max_abs = 0;  // whole against parts at the default level
    std::string input;
  };

  std::string title_;
  Contract contract_;
  Run whole_disabled_, parts_disabled_;
  std::int64_t inputs_ = 0, explained_inputs_ = 0;
  Difference at_default_, at_disabled_;
  std::map<std::string, Level> levels_;
  TaskSummary summary_;
};

}  // namespace tenonnx
