// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Inf and NaN among what a user gives to feed a model with. Both sides of a comparison would agree
// on what follows from them, and a finder of faults would blame whichever node meets them first.
#pragma once

#include <filesystem>
#include <string>

#include "tenonnx/base.h"

namespace tenonnx {

// "input 'x' float32 [2,8] holds 3 NaN and 1 infinite value among 16 elements, the first at [0,4]";
// "" where all are finite, or the tensor holds no floating numbers.
std::string not_finite(const std::string& name, const Tensor& tensor);

// InvalidArgument that names `file`, the tensor and what to do.
Status check_finite(const std::filesystem::path& file, const std::string& name,
                    const Tensor& tensor);

}  // namespace tenonnx
