// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Inputs of a model as the proofs of passes take them.
#pragma once

#include "flow/tensor_inputs.h"
#include "passes/proof.h"

namespace tenonnx {

// The first of `inputs`, which must outlive it: two real ones show what the regions do; of random
// ones each is as good as the next.
ProofData region_data(const TensorInputs& inputs);

}  // namespace tenonnx
