// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What is given to a graph against what it takes, checked before ONNX Runtime sees it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

// InvalidArgument, got against allowed: wrong count, undefined tensor, dtype, rank, dimension
// (a dimension of -1 takes any size, an input of unknown rank any shape).
Status check_inputs(std::span<const TensorInfo> allowed, std::span<const Tensor> given);

// The tensors in the order of `allowed`. InvalidArgument names what is missing or unknown and lists
// the inputs that exist.
Result<std::vector<Tensor>> order_by_name(std::span<const TensorInfo> allowed,
                                          const TensorMap& given);

// "images float32 [1,3,?,?]".
std::string to_string(const TensorInfo& info);

}  // namespace tenonnx
