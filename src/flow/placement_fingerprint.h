// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Who computed a node that a toolchain calls the device's? A device that stores float16 gives no
// value that float16 does not hold, whereas code on the CPU computes in float32.
#pragma once

#include <set>
#include <string>

#include "adapters/provider.h"
#include "device/device.h"
#include "model/model.h"
#include "ort/executor.h"

namespace tenonnx {

struct Fingerprint {
  std::set<std::string> mislabelled;  // operators with values that the device cannot store
  std::string example;                // "GridSample 'gs_1': 0.12345 of 'y' is no float16"
  std::size_t looked_at = 0;          // nodes whose values were taken
};

// Of each operator type that `record` calls the device's, takes the output of the first and the
// last node, as outputs added to the model. Operators that only move values (Transpose, TopK) show
// nothing of their own and are left out. Nothing where the device's arithmetic does not round
// outputs.
Result<Fingerprint> take_fingerprint(const Executor& executor, const Model& model,
                                     const ProviderRecord& record, const Device& device,
                                     const TensorMap& inputs, const LoadOptions& options);

}  // namespace tenonnx
