// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The simulated device, address "sim:NAME": a graph computed in the arithmetic of
// devices/NAME.json.
//
// load() folds constants, as a device's compiler does, transforms the graph (passes/sim_common.h)
// and loads it on ONNX Runtime with optimisation disabled whatever LoadOptions say: fusions would
// compute over the rounding. Inputs, outputs and tensor names are those of the model.
#pragma once

#include <optional>
#include <string_view>

#include "adapters/differing_op.h"
#include "device/device.h"
#include "ort/executor.h"

namespace tenonnx {

// The device of "sim:NAME"; nullopt for other addresses. As find_device.
Result<std::optional<Device>> simulated_device(std::string_view address);

// InvalidArgument where the device has no arithmetic section.
Result<std::unique_ptr<Executor>> make_sim_executor(const Device& device);

// The graph that such an executor runs.
Result<Model> simulated_model(const Model& model, const Arithmetic& arithmetic);

// Loads such a graph, with optimisation disabled whatever `options` say.
Result<std::unique_ptr<LoadedGraph>> load_simulated(const Model& simulated,
                                                    const LoadOptions& options,
                                                    std::string_view address = "sim");

// What proofs of passes run on: the cpu, which also runs graphs that the sim_ passes have changed
// already. Weights are not packed beforehand: a MatMul adds a packed weight's products in another
// order than those of a weight that is computed in the graph, and so folding constants would show
// as a difference (241 elements of a DEIMv2-S at 640 pixels) though every value is the same.
// `listener`: of the operator Differing (differing_op.h), which a graph may hold too.
std::unique_ptr<Executor> make_proof_executor(DifferingListener listener = {});

}  // namespace tenonnx
