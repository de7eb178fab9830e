// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Where the fused operator's inputs are in the graph already, and what it takes to make them where
// they are not: of several tensors that hold a value, the one that needs the least work.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "passes/ms_deform_attn_pattern.h"
#include "passes/rewriter.h"

namespace tenonnx {

// Why the operator cannot stand for a GridSample: its attributes, shapes or dtype. "" where it can.
std::string unsuitable(const Rewriter& r, int grid_sample);

// `inputs`: the first input of each level's GridSample, [N, D, H, W].
std::optional<MSDeformOperand> value_operand(const Rewriter& r,
                                             const std::vector<std::string>& inputs,
                                             std::int64_t batch);
// `grids`: the second, [N, Q, P, 2].
std::optional<MSDeformOperand> locations_operand(const Rewriter& r,
                                                 const std::vector<std::string>& grids,
                                                 std::int64_t batch);
// The weights as each of several tensors has them, [N, Q, points].
std::optional<MSDeformOperand> weights_operand(const Rewriter& r,
                                               const std::vector<MSDeformOperand::Piece>& forms,
                                               std::int64_t batch);

}  // namespace tenonnx
