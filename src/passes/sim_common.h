// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A device's arithmetic as a graph transform: what sim_float16, sim_bfloat16 and the executor
// sim:NAME share.
//
// before: x -> MatMul(x, W) -> y -> Add(y, b) -> z
// after:  x -> Round -> Round(operand) -> MatMul(., W') -> Round(product) -> y
//           -> Add(y, b') -> Round -> z          W', b': rounded in place
//
// - Round is an operator of the domain tenonnx.sim (passes/sim_round.h says what it computes); the
//   executor registers it. Names of tensors stay: what a node wrote before rounding is called
//   <name>/unrounded.
// - Graph inputs, weights (initializers, Constant and ConstantOfShape) and outputs of nodes are
//   rounded where the arithmetic says so. Float tensors of 32 and 64 bits; integers stay.
// - A node that only moves values (kMoving) needs no Round where what it takes is stored already.
// - Operands of MatMul, Gemm, Conv, ConvTranspose whose magnitude the multiplier cannot hold
// overflow
//   before the product (Arithmetic::matmul_operand).
// - Where the device's IEEE operators leave NaN that others read as a number (Overflow::kPattern),
// a
//   RoundProduct finds which NaN it is.
// - An operator with a form (passes/sim_forms.h) becomes the operator Form; a GELU written with Erf
//   or Tanh is one operator, as the device's compiler makes it.
// - Bodies of If/Loop/Scan are transformed too; forms of Gelu only in the main graph.
//
// The graph must run with ONNX Runtime's optimisation disabled: a fusion computes over the
// rounding.
#pragma once

#include <string_view>

#include "device/device.h"
#include "passes/runner.h"

namespace tenonnx {

inline constexpr std::string_view kSimDomain = "tenonnx.sim";
inline constexpr std::string_view kSimRound = "Round";              // float32
inline constexpr std::string_view kSimRoundDouble = "RoundDouble";  // float64
inline constexpr std::string_view kSimForm = "Form";
inline constexpr std::string_view kSimRoundProduct = "RoundProduct";

// The nodes that stand for the arithmetic of MatMul and Conv units.
bool is_product(std::string_view op_type);

// applied: Round nodes and rounded weights. skipped: tensors that stay unrounded, as of float16
// tensors and of outputs whose type is not known. Expects folded constants: what a device's
// compiler computes beforehand would be rounded step by step otherwise.
Result<PassOutcome> simulate(Model& model, const Arithmetic& arithmetic);

// The passes sim_float16 and sim_bfloat16. Options: device=NAME, whose arithmetic section must have
// that storage; without it inputs, weights and outputs are rounded, overflow is infinity and
// subnormals are kept.
Result<PassOutcome> simulate_storage(Model& model, const PassOptions& options, DType storage);

}  // namespace tenonnx
