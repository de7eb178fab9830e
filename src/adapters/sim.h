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

#include "device/device.h"
#include "ort/executor.h"

namespace tenonnx {

// InvalidArgument where the device has no arithmetic section.
Result<std::unique_ptr<Executor>> make_sim_executor(const Device& device);

// The graph that such an executor runs.
Result<Model> simulated_model(const Model& model, const Arithmetic& arithmetic);

// The cpu, which also runs graphs that the sim_ passes have changed already.
std::unique_ptr<Executor> make_cpu_with_sim_ops();

}  // namespace tenonnx
