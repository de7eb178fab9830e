// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the simulation of a device's arithmetic asks of an operator, and the nodes that it puts in.
#pragma once

#include <string>
#include <string_view>

#include "passes/sim_round.h"

namespace onnx {
class NodeProto;
}  // namespace onnx

namespace tenonnx {

// Every element of the results is an element of an input, its negative, its magnitude, or zero:
// rounded inputs give rounded results, the same bits.
bool only_moves(const onnx::NodeProto& node);
// Results within [-1, 1], so that they never overflow as operands of a product.
bool is_within_one(std::string_view op_type);

bool is_simulated_type(int onnx_type);  // float32, float64
bool is_other_float(int onnx_type);     // float16, bfloat16

// A node tenonnx.sim::Round (RoundDouble for float64).
onnx::NodeProto round_node(const RoundSpec& spec, int onnx_type, const std::string& name,
                           const std::string& input, const std::string& output);

}  // namespace tenonnx
