// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What fold_constants asks of a node: may it be folded, what does it take, how large is it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "passes/inference.h"

namespace onnx {
class NodeProto;
class TensorProto;
}  // namespace onnx

namespace tenonnx {

// What one intermediate value may take while constants are evaluated.
inline constexpr std::int64_t kLargestIntermediate = 256 << 20;

// Random operators, Dropout in training mode, QuantizeLinear and DequantizeLinear, operators
// outside ai.onnx; also where a body holds one.
bool never_folded(const onnx::NodeProto& node);
// The size of the outputs depends on values, but is at most 8 bytes an element and dimension.
bool size_is_bounded(const onnx::NodeProto& node);
// Inputs, and what the bodies capture.
std::vector<std::string_view> all_inputs(const onnx::NodeProto& node);
bool makes(const onnx::NodeProto& node, std::string_view name);

std::int64_t bytes_of(const onnx::TensorProto& tensor);
// -1 where it is not known; more than kLargestIntermediate for anything larger.
std::int64_t bytes_of(const InferredType& type);

// The value of a Constant node as a tensor named after its output; false for strings and sparse
// ones.
bool constant_value(const onnx::NodeProto& node, onnx::TensorProto& value);
// What a Shape node gives for a tensor of this shape.
Tensor shape_value(const onnx::NodeProto& node, const Shape& shape);

}  // namespace tenonnx
