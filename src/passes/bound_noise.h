// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the bound of a bounded pass may do to a whole graph: its noise floor.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/model.h"
#include "tenonnx/base.h"

namespace tenonnx {

// Moves every element of the tensors in `bounds` that the main graph's nodes make by its tensor's
// bound, up or down at random: float32 tensors alone. A form that keeps its bound
// errs by no more in any element. Returns how many tensors it moved.
Result<int> add_bound_noise(Model& model, const std::map<std::string, double>& bounds,
                            std::uint64_t seed);

}  // namespace tenonnx
