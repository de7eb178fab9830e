// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Bounds of the integer tensors of a graph, proved from constants, static shapes and operators.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "model/model.h"
#include "passes/inference.h"

namespace tenonnx {

// Every element lies in [low, high].
struct ValueRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// Of the int64 and int32 tensors of the main graph; what is absent has no proved bound. Sources:
// constants; the index of a TopK or ArgMax lies below its dimension; Cast from narrow integers and
// bool; Clip; then through arithmetic, where the result fits int64, and through operators that move
// elements. `assumed`: bounds of outputs of Cast that the caller sees to.
std::unordered_map<std::string, ValueRange> value_ranges(
    const Model& model, const Inference& inference,
    const std::unordered_map<std::string, ValueRange>& assumed = {});

}  // namespace tenonnx
