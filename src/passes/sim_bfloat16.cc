// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// sim_bfloat16: computes as a device that stores bfloat16.
//
// before: x -> MatMul -> y    after: Round(x) -> MatMul -> Round -> y, weights rounded
//
// passes/sim_common.h says which tensors are rounded, passes/sim_round.h how.
// Options: device=NAME takes the arithmetic section of that device file. Refuses a device of
// another storage type. Class approximate: it is another model, on purpose.
#include "passes/passes.h"
#include "passes/sim_common.h"

namespace tenonnx {

namespace passes {

Result<PassOutcome> sim_bfloat16(Model& model, const PassOptions& options) {
  return simulate_storage(model, options, DType::kBFloat16);
}

}  // namespace passes
}  // namespace tenonnx
