// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/whole_before.h"

#include "adapters/sim.h"
#include "base/status.h"
#include "passes/proof_inputs.h"

namespace tenonnx {

LoadOptions whole_load(LoadOptions load) {
  load.optimization = Optimization::kDisabled;
  load.profile = false;
  return load;
}

WholeBefore::WholeBefore(const Model& before, const TensorInputs& inputs, const LoadOptions& load)
    : future_(std::async(std::launch::async, [&before, &inputs, load]() -> Result<Ready> {
        Ready ready;
        TENONNX_ASSIGN_OR_RETURN(ready.graph,
                                 make_proof_executor()->load(before, whole_load(load)));
        if (inputs.size() == 0) return ready;
        TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, inputs.load(0));
        TENONNX_ASSIGN_OR_RETURN(ready.first, run_whole(*ready.graph, input.tensors));
        TENONNX_ASSIGN_OR_RETURN(ready.disturbed,
                                 run_whole(*ready.graph, disturb(input.tensors, kWholeSeed)));
        return ready;
      })) {}

}  // namespace tenonnx
