// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/sim_nodes.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>

#include "model/graph.h"
#include "passes/sim_common.h"

namespace tenonnx {
namespace {

constexpr std::array<std::string_view, 4> kProducts = {"MatMul", "Gemm", "Conv", "ConvTranspose"};

// Every element of the result is an element of an input, its negative, its magnitude, or zero: a
// rounded input gives a rounded result, the same bits.
// clang-format off
constexpr std::array<std::string_view, 36> kMoving = {
    "Abs", "Clip", "Compress", "Concat", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather",
    "GatherElements", "GatherND", "GlobalMaxPool", "Identity", "Max", "MaxPool", "Min", "Neg",
    "OneHot", "Pad", "ReduceMax", "ReduceMin", "Relu", "Reshape", "ReverseSequence",
    "ScatterElements", "ScatterND", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "TopK",
    "Transpose", "Trilu", "Unsqueeze", "Where",
};
// clang-format on

// Results within [-1, 1]: no operand of a product that overflows.
constexpr std::array<std::string_view, 7> kWithinOne = {"Cos", "Erf",     "HardSigmoid", "Sigmoid",
                                                        "Sin", "Softmax", "Tanh"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

void set_string(onnx::NodeProto& node, const char* name, std::string_view value) {
  onnx::AttributeProto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(onnx::AttributeProto::STRING);
  a.set_s(std::string(value));
}
void set_int(onnx::NodeProto& node, const char* name, std::int64_t value) {
  onnx::AttributeProto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(onnx::AttributeProto::INT);
  a.set_i(value);
}
void set_float(onnx::NodeProto& node, const char* name, double value) {
  onnx::AttributeProto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(onnx::AttributeProto::FLOAT);
  a.set_f(static_cast<float>(value));
}

}  // namespace

bool is_product(std::string_view op_type) { return contains(kProducts, op_type); }

bool is_within_one(std::string_view op_type) { return contains(kWithinOne, op_type); }

bool is_simulated_type(int onnx_type) {
  return onnx_type == onnx::TensorProto::FLOAT || onnx_type == onnx::TensorProto::DOUBLE;
}

bool is_other_float(int onnx_type) {
  return onnx_type == onnx::TensorProto::FLOAT16 || onnx_type == onnx::TensorProto::BFLOAT16;
}

bool only_moves(const onnx::NodeProto& node) {
  if (!normalized_domain(node.domain()).empty() || !contains(kMoving, node.op_type())) return false;
  // Bounds and fill values that are attributes have not been rounded; a reduction adds.
  if (node.op_type() == "Clip" || node.op_type() == "Pad") {
    return find_attribute(node, "min") == nullptr && find_attribute(node, "max") == nullptr &&
           find_attribute(node, "value") == nullptr;
  }
  if (node.op_type().starts_with("Scatter"))
    return attribute_or(node, "reduction", "none") == "none";
  // The ratio scales in training mode, and in every mode before opset 7.
  if (node.op_type() == "Dropout") return node.input_size() <= 2;
  return true;
}

onnx::NodeProto round_node(const RoundSpec& spec, int onnx_type, const std::string& name,
                           const std::string& input, const std::string& output) {
  onnx::NodeProto node;
  node.set_op_type(
      std::string(onnx_type == onnx::TensorProto::DOUBLE ? kSimRoundDouble : kSimRound));
  node.set_domain(std::string(kSimDomain));
  node.set_name(name);
  node.add_input(input);
  node.add_output(output);
  set_string(node, "storage", to_string(spec.storage));
  if (spec.overflow.kind == Overflow::Kind::kSaturate) {
    set_float(node, "saturate", spec.overflow.max);
    if (spec.overflow.infinite > 0) set_float(node, "infinite", spec.overflow.infinite);
    if (spec.overflow.nan) set_float(node, "nan", *spec.overflow.nan);
  }
  if (!spec.keep_subnormals) set_int(node, "flush", 1);
  if (!spec.round) set_int(node, "range_only", 1);
  if (spec.relative_error > 0) {
    set_float(node, "relative_error", spec.relative_error);
    set_int(node, "seed", static_cast<std::int64_t>(spec.seed));
  }
  return node;
}

}  // namespace tenonnx
