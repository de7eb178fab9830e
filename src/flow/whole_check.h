// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The last check of changed graphs: the whole graph before all passes against the whole graph
// after them, on the real inputs, on the cpu with optimisation disabled.
//
// First the graph after runs alone, and every part of the graph before that is not in it on the
// same tensors (one_run.h). That settles it where no bit differs, or, without a task, where each
// part stays within its noise floor. Else each graph runs for itself, and its outputs are judged:
//
//   only bitwise passes    every output identical bit for bit
//   algebraic              every output within the noise floor of the graph before (proof_floor.h);
//                          where a contract says what the outputs mean and there are images, the
//                          gates of a cpu re-export decide instead: past a selection rows change
//                          places, which is no error
//                          Where tensors inside are float16 or bfloat16, one rounding more of each
//                          (storage_noise.h) is part of the floor, and of what those gates allow
//   bounded                the same; and where the passes say what they compute in another
//                          arithmetic, errors of the size of its bound (bound_noise.h) are put
//                          there into the graph before, and what these do is allowed: by those
//                          gates never more than of a part on a device
//   approximate            the task's gates of a part on a device, with images; else INCONCLUSIVE
//
// Random inputs: scores are nearly tied, so what is selected says nothing. An output of a graph
// with a selection that leaves the floor is INCONCLUSIVE then, not FAIL.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "flow/tensor_inputs.h"
#include "metrics/limit.h"
#include "model/model.h"
#include "ort/executor.h"
#include "passes/runner.h"
#include "tenonnx/contract.h"

namespace tenonnx {

struct WholeCheck {
  std::vector<Check> checks;
  Verdict verdict = Verdict::kInconclusive;
};

// `contract`: nullptr where there is none that fits. `exactness`: of the least exact pass.
// `renamed`: what the passes say of names (NameRecord::renamed), so that less is run twice; nothing
// follows from it. `recomputed`: PassOutcome::recomputed of all passes. `reduced`: `before` with
// what follows from its constants alone computed (compute_constants()), where somebody has it.
Result<WholeCheck> check_whole(const Model& before, const Model& after, PassClass exactness,
                               const TensorInputs& inputs, const Contract* contract,
                               const LoadOptions& load,
                               const std::map<std::string, std::string>& renamed = {},
                               const std::map<std::string, double>& recomputed = {},
                               const Model* reduced = nullptr);

}  // namespace tenonnx
