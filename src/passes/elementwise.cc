// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/elementwise.h"

#include <algorithm>
#include <array>

namespace tenonnx {
namespace {

constexpr std::array<std::string_view, 37> kUnary = {
    "Abs",        "Cast",     "Ceil",      "Celu",  "Clip",        "Cos",       "Elu",
    "Erf",        "Exp",      "Floor",     "Gelu",  "HardSigmoid", "HardSwish", "Identity",
    "IsInf",      "IsNaN",    "LeakyRelu", "Log",   "Mish",        "Neg",       "Not",
    "Reciprocal", "Relu",     "Round",     "Selu",  "Sigmoid",     "Sign",      "Sin",
    "Softplus",   "Softsign", "Sqrt",      "Swish", "Tan",         "Tanh",      "ThresholdedRelu",
    "Sinh",       "Cosh"};
constexpr std::array<std::string_view, 17> kNary = {
    "Add",  "Sub",        "Mul",   "Div",     "Pow",
    "Min",  "Max",        "Sum",   "Mean",    "And",
    "Or",   "Xor",        "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual"};
constexpr std::array<std::string_view, 8> kReductions = {
    "ReduceMax",  "ReduceMin", "ReduceMean", "ReduceSum",
    "ReduceProd", "ReduceL1",  "ReduceL2",   "ReduceSumSquare"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool is_unary_elementwise(std::string_view op_type) { return contains(kUnary, op_type); }
bool is_nary_elementwise(std::string_view op_type) { return contains(kNary, op_type); }
bool is_reduction(std::string_view op_type) { return contains(kReductions, op_type); }

}  // namespace tenonnx
