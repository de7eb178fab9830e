// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The values that preprocessing hands to the model, as the contract's numbers imply them.
#pragma once

#include <array>

#include "tenonnx/contract.h"

namespace tenonnx {

// Lowest and highest value over the three channels for pixels 0 to 255: after scale, and after mean
// and std where the pipeline applies them.
std::array<double, 2> implied_range(const ImageInput& image);

// Whether `scale` means the float32 division x / 255: within 1e-6 of 1/255, relative, so that
// 0.003921569 (seven digits) does too.
bool is_division_by_255(double scale);

}  // namespace tenonnx
