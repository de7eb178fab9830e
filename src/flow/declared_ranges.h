// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The range of an output's values as the contract declares it: the peak of its PSNR.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tenonnx/base.h"
#include "tenonnx/contract.h"

namespace tenonnx {

struct DeclaredRange {
  double width = 0;    // above 0; the range begins at 0
  std::string origin;  // "scores are 0..1 (contract)"
};

// scores and pred_boxes: 0..1. boxes: 0 to the longer side of the original image, in pixels, as
// `inputs` (by the names of the model's inputs) has it; of the model's input where there is no size
// input. nullopt for other tensors: labels are names, logits have no end.
std::optional<DeclaredRange> declared_range(const Contract& contract, std::string_view output,
                                            const TensorMap& inputs);

}  // namespace tenonnx
