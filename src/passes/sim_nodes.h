// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the simulation of a device's arithmetic asks of an operator, and the nodes that it puts in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "passes/sim_round.h"

namespace onnx {
class GraphProto;
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

// What the arithmetic says of an operator of ai.onnx; of the node's, of other domains nothing.
const OperatorArithmetic& own_arithmetic(const Arithmetic& arithmetic, std::string_view op_type);
const OperatorArithmetic& own_arithmetic(const Arithmetic& arithmetic, const onnx::NodeProto& node);

// How values are stored that overflow so.
RoundSpec stored_values(const Arithmetic& arithmetic, const Overflow& overflow);
// How the results of an operator are, of which the arithmetic says `own`; `product`: is_product().
RoundSpec stored_results(const Arithmetic& arithmetic, const OperatorArithmetic& own, bool product);

// Weights that only operators read which take them unrounded (OperatorArithmetic::keep_weights).
std::unordered_set<std::string> kept_weights(const onnx::GraphProto& graph,
                                             const Arithmetic& arithmetic);

// A node tenonnx.sim::Round (RoundDouble for float64).
onnx::NodeProto round_node(const RoundSpec& spec, int onnx_type, const std::string& name,
                           const std::string& input, const std::string& output);

// A node tenonnx.sim::Form in the place of `node`, from its first input to its first output.
onnx::NodeProto form_node(const onnx::NodeProto& node, const OperatorArithmetic& own,
                          std::int64_t opset, const std::string& input);

// A node of form "grid_fractions" for the second input of a GridSample of values of this size;
// nothing where its mode does not interpolate.
std::optional<onnx::NodeProto> grid_node(const onnx::NodeProto& sample, std::int64_t height,
                                         std::int64_t width, const std::string& name,
                                         const std::string& output);

// A node tenonnx.sim::RoundProduct of what `product` wrote as `input`; nothing where its attributes
// are not of a kind that is known: a Round does then.
std::optional<onnx::NodeProto> round_product_node(const RoundSpec& spec,
                                                  const onnx::NodeProto& product,
                                                  const std::string& name, const std::string& input,
                                                  const std::string& output);

// Rounds the float attributes, those that are absent at their defaults, as stored values.
void round_attributes(onnx::NodeProto& node, const RoundSpec& spec, std::int64_t opset);

}  // namespace tenonnx
