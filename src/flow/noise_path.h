// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Computations that are right and differ only in rounding: what a noise floor is measured with.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "flow/compare_windows.h"
#include "model/model.h"
#include "ort/executor.h"

namespace tenonnx {

// Of float16 and bfloat16: inputs, weights and every result rounded to the type's significant bits
// (sim_float16, sim_bfloat16), but with no end to its range. What overflows on a device is then no
// part of the floor: an error of its own, not an excuse.
Arithmetic rounding_only(DType storage);

// Operators that a device computes in a form of its own (passes/sim_forms.h), as its file says with
// a source: what that costs is known of the device, and no fault. Overflow is no part of it.
struct DeviceForms {
  std::string device;  // "htp-v73"; "" for none
  std::map<std::string, OperatorArithmetic> operators;
};
DeviceForms forms_of(const Device& device);

// Of float32: the result of every operator that computes is off by a relative error of 2^-24 (one
// rounding), drawn from a normal distribution by the tensor's name. The floor of graphs that differ
// by the order of sums or by constants that were merged.
Arithmetic one_rounding_more(const Model& model);

// The floors of a comparison, and the executors that run them.
struct NoisePaths {
  std::vector<std::unique_ptr<Executor>> executors;
  std::vector<FloorRun> runs;
};
// float16, bfloat16: the path in that type, operators in the device's forms. float32: the other
// optimisation level, and one rounding more where a tensor exceeds it.
Result<NoisePaths> noise_paths(const Model& reference, DType storage, const DeviceForms& forms);

// Magnitudes of float constants of the model beyond what `storage` holds, rising: masks.
std::vector<double> mask_magnitudes(const Model& model, DType storage);

}  // namespace tenonnx
