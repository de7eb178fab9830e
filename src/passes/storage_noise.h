// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What one rounding more of every float16 and bfloat16 tensor does to a graph: the noise floor of
// graphs that store less inside than at their inputs and outputs, where disturbing the inputs by a
// unit of float32 says nothing.
//
// before: x -> MatMul -> y (float16)
// after:  x -> MatMul -> Cast(float32) -> Round(relative error) -> Cast(float16) -> y
//
// The relative error is drawn from a normal distribution by the tensor's name; its deviation is
// half a unit in the last place: 2^-11 of float16, 2^-8 of bfloat16 (passes/sim_round.h). Constants
// of these types are disturbed by one unit at random (passes/proof_inputs.h).
#pragma once

#include <cstdint>

#include "model/model.h"

namespace tenonnx {

// Changes `model`, and returns how many tensors are rounded once more. Nodes that only move values,
// and bodies of If, Loop and Scan, stay as they are. The graph runs on an executor that has the
// simulation's operators (make_proof_executor), with optimisation disabled.
Result<int> add_storage_noise(Model& model, std::uint64_t seed);

}  // namespace tenonnx
