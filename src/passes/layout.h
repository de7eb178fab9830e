// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Operators that only move or relabel elements: what the passes about shapes and transposes ask.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "passes/rewriter.h"

namespace tenonnx {

// Reshape, Flatten, Squeeze, Unsqueeze: another shape, the same elements in the same order.
bool is_reshape_like(const onnx::NodeProto& node);

using Permutation = std::vector<std::int64_t>;

// Output axis k of a Transpose is input axis perm[k]; nullopt where neither perm nor rank is known,
// or the node is no Transpose.
std::optional<Permutation> permutation(const Rewriter& r, const onnx::NodeProto& node);
bool is_identity(const Permutation& perm);
Permutation inverse(const Permutation& perm);
// That of Transpose(second)(Transpose(first)(x)).
Permutation composed(const Permutation& first, const Permutation& second);

// Transpose of a tensor in memory; perm.size() is its rank.
Tensor transposed(const Tensor& tensor, const Permutation& perm);

// The target of a Reshape to this shape: -1 for the one dimension that is not known. nullopt where
// two are not known, or a dimension is 0 (which Reshape takes for "as in the input").
std::optional<Tensor> reshape_target(const std::optional<Shape>& shape);

// Attributes of integers ("axes") up to some opset, an input after it: nullopt where the node has
// neither, or the input is not constant.
std::optional<std::vector<std::int64_t>> ints_of(const Rewriter& r, const onnx::NodeProto& node,
                                                 std::string_view attribute, int input);

}  // namespace tenonnx
