// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/whole_before.h"

#include "adapters/sim.h"
#include "base/status.h"
#include "model/shapes.h"

namespace tenonnx {

LoadOptions whole_load(LoadOptions load) {
  load.optimization = Optimization::kDisabled;
  return load;
}

WholeBefore::WholeBefore(const Model& before, const TensorInputs& inputs, const LoadOptions& load)
    : future_(std::async(std::launch::async, [&before, &inputs, load]() -> Result<Ready> {
        Ready ready;
        // With its shapes in it a raw graph of thousands of nodes is planned in half the time: ONNX
        // Runtime 1.29 searches freed memory for each tensor, and finds none without a shape.
        Model known = before.clone();
        TENONNX_RETURN_IF_ERROR(annotate_shapes(known));
        TENONNX_ASSIGN_OR_RETURN(ready.graph, make_proof_executor()->load(known, whole_load(load)));
        if (inputs.size() == 0) return ready;
        TENONNX_ASSIGN_OR_RETURN(const ReferenceInput input, inputs.load(0));
        TENONNX_ASSIGN_OR_RETURN(ready.first, run_whole(*ready.graph, input.tensors));
        return ready;
      })) {}

}  // namespace tenonnx
