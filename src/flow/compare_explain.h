// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Questions to whole models that a comparison asks beside its tensors.
#pragma once

#include <string>
#include <vector>

#include "flow/inputs.h"
#include "metrics/limit.h"
#include "model/model.h"
#include "ort/executor.h"
#include "tenonnx/contract.h"

namespace tenonnx {

// Elements of the outputs that differ between the model as it was given and with its constants
// folded, on one input. At the options' optimisation level, where the runtime folds as well: with
// it disabled a weight that is computed is not packed beforehand, and products round otherwise.
// INCONCLUSIVE where there are any.
Result<Check> folding_check(const Executor& executor, const Model& given, const Model& folded,
                            const ReferenceInput& input, const LoadOptions& load);

struct FedSide {
  const Executor* executor = nullptr;
  const Model* model = nullptr;
  std::string title;  // "reference"
};
struct FedSides {
  FedSide runnable;  // takes any input
  FedSide other;     // may be a recording
};

// Sentences: mistakes in feeding a model, tried on the first image, that explain why the two sides
// differ (flow/contract_errors.h).
Result<std::vector<std::string>> explain_difference(const FedSides& sides, const Contract& contract,
                                                    const InputSource& images,
                                                    const LoadOptions& load);

}  // namespace tenonnx
