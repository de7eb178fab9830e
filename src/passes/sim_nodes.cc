// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/sim_nodes.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>

#include "model/graph.h"
#include "passes/edit.h"
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

void set_floats(onnx::NodeProto& node, const char* name, const std::vector<float>& values) {
  onnx::AttributeProto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(onnx::AttributeProto::FLOATS);
  a.mutable_floats()->Assign(values.begin(), values.end());
}

// Of one input and one output.
onnx::NodeProto sim_node(std::string_view op_type, const std::string& name,
                         const std::string& input, const std::string& output) {
  onnx::NodeProto node = make_node(op_type, {input}, {output});
  node.set_domain(std::string(kSimDomain));
  node.set_name(name);
  return node;
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

const OperatorArithmetic& own_arithmetic(const Arithmetic& arithmetic, std::string_view op_type) {
  static const OperatorArithmetic none;
  const auto found = arithmetic.operators.find(std::string(op_type));
  return found == arithmetic.operators.end() ? none : found->second;
}

const OperatorArithmetic& own_arithmetic(const Arithmetic& arithmetic,
                                         const onnx::NodeProto& node) {
  return own_arithmetic(arithmetic, normalized_domain(node.domain()).empty() ? node.op_type() : "");
}

RoundSpec stored_values(const Arithmetic& arithmetic, const Overflow& overflow) {
  RoundSpec spec;
  spec.storage = arithmetic.storage;
  spec.overflow = overflow;
  spec.keep_subnormals = arithmetic.keep_subnormals;
  return spec;
}

RoundSpec stored_results(const Arithmetic& arithmetic, const OperatorArithmetic& own,
                         bool product) {
  RoundSpec spec = stored_values(arithmetic, own.overflow ? *own.overflow
                                             : product    ? arithmetic.matmul_result
                                                          : arithmetic.elementwise);
  if (own.flush_results) spec.keep_subnormals = false;
  return spec;
}

std::unordered_set<std::string> kept_weights(const onnx::GraphProto& graph,
                                             const Arithmetic& arithmetic) {
  std::unordered_set<std::string> kept, rounded;
  for (const onnx::NodeProto& node : graph.node()) {
    const bool keeps = own_arithmetic(arithmetic, node).keep_weights;
    for (int i = 0; i < node.input_size(); ++i)
      (keeps && i > 0 ? kept : rounded).insert(node.input(i));
    for (const std::string_view name : captured_names(node)) rounded.emplace(name);
  }
  std::erase_if(kept, [&](const std::string& name) { return rounded.contains(name); });
  return kept;
}

onnx::NodeProto round_node(const RoundSpec& spec, int onnx_type, const std::string& name,
                           const std::string& input, const std::string& output) {
  onnx::NodeProto node = sim_node(
      onnx_type == onnx::TensorProto::DOUBLE ? kSimRoundDouble : kSimRound, name, input, output);
  set_attribute(node, "storage", to_string(spec.storage));
  if (spec.overflow.kind == Overflow::Kind::kSaturate) {
    set_attribute(node, "saturate", static_cast<float>(spec.overflow.max));
    if (spec.overflow.infinite > 0)
      set_attribute(node, "infinite", static_cast<float>(spec.overflow.infinite));
    if (spec.overflow.nan) set_attribute(node, "nan", static_cast<float>(*spec.overflow.nan));
  }
  if (spec.overflow.kind == Overflow::Kind::kPattern)
    set_attribute(node, "pattern", std::int64_t{1});
  if (!spec.keep_subnormals) set_attribute(node, "flush", std::int64_t{1});
  if (!spec.round) set_attribute(node, "range_only", std::int64_t{1});
  if (spec.relative_error > 0) {
    set_attribute(node, "relative_error", static_cast<float>(spec.relative_error));
    set_attribute(node, "seed", static_cast<std::int64_t>(spec.seed));
  }
  return node;
}

onnx::NodeProto form_node(const onnx::NodeProto& node, const OperatorArithmetic& own,
                          std::int64_t opset, const std::string& input) {
  onnx::NodeProto form = sim_node(kSimForm, node.name(), input, node.output(0));
  set_attribute(form, "form", own.form);
  if (node.op_type() == "Softmax") {
    // Source: ONNX Softmax-13, Softmax-11 (from the axis to the end, 1 by default).
    set_attribute(form, "axis", attribute_or(node, "axis", std::int64_t{opset >= 13 ? -1 : 1}));
    if (opset < 13) set_attribute(form, "to_end", std::int64_t{1});
    set_floats(form, "reciprocal_error",
               {own.reciprocal_error.begin(), own.reciprocal_error.end()});
  }
  return form;
}

std::optional<onnx::NodeProto> grid_node(const onnx::NodeProto& sample, std::int64_t height,
                                         std::int64_t width, const std::string& name,
                                         const std::string& output) {
  const std::string mode = attribute_or(sample, "mode", "bilinear");
  if (mode != "bilinear" && mode != "linear") return std::nullopt;
  onnx::NodeProto node = sim_node(kSimForm, name, sample.input(1), output);
  set_attribute(node, "form", std::string_view("grid_fractions"));
  // Source: ONNX GridSample-20: ((x + 1) * size - 1) / 2, or (x + 1) / 2 * (size - 1).
  const bool corners = attribute_or(sample, "align_corners", std::int64_t{0}) != 0;
  std::vector<float> scale, offset;
  for (const std::int64_t size : {width, height}) {
    const auto pixels = static_cast<float>(size);
    scale.push_back(corners ? (pixels - 1) / 2 : pixels / 2);
    offset.push_back((pixels - 1) / 2);
  }
  set_floats(node, "scale", scale);
  set_floats(node, "offset", offset);
  return node;
}

std::optional<onnx::NodeProto> round_product_node(const RoundSpec& spec,
                                                  const onnx::NodeProto& product,
                                                  const std::string& name, const std::string& input,
                                                  const std::string& output) {
  const bool conv = product.op_type() == "Conv", gemm = product.op_type() == "Gemm";
  const bool add = product.op_type() == "Add";
  if (!conv && !gemm && !add && product.op_type() != "MatMul") return std::nullopt;
  if (attribute_or(product, "auto_pad", "NOTSET") != "NOTSET") return std::nullopt;
  if (attribute_or(product, "alpha", 1.0F) != 1 || attribute_or(product, "beta", 1.0F) != 1)
    return std::nullopt;
  onnx::NodeProto node = round_node(spec, onnx::TensorProto::FLOAT, name, input, output);
  node.set_op_type(std::string(kSimRoundProduct));
  for (int i = 0; i < 2; ++i) node.add_input(product.input(i));
  set_attribute(node, "product", std::string_view(conv ? "Conv" : add ? "Add" : "MatMul"));
  if (gemm) {
    set_attribute(node, "trans_a", attribute_or(product, "transA", std::int64_t{0}));
    set_attribute(node, "trans_b", attribute_or(product, "transB", std::int64_t{0}));
  }
  if (conv) {
    set_attribute(node, "group", attribute_or(product, "group", std::int64_t{1}));
    const auto set_ints = [&](const char* key, std::size_t count, std::int64_t fallback) {
      std::vector<std::int64_t> values(count, fallback);
      if (const onnx::AttributeProto* given = find_attribute(product, key))
        values.assign(given->ints().begin(), given->ints().end());
      set_attribute(node, key, values);
    };
    set_ints("strides", 2, 1);
    set_ints("dilations", 2, 1);
    set_ints("pads", 4, 0);
    if (product.input_size() > 2 && !product.input(2).empty()) node.add_input(product.input(2));
  }
  return node;
}

void round_attributes(onnx::NodeProto& node, const RoundSpec& spec, std::int64_t opset) {
  const onnx::OpSchema* schema =
      onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(opset), "");
  if (schema == nullptr) return;
  for (const auto& [name, attribute] : schema->attributes()) {
    if (attribute.type != onnx::AttributeProto::FLOAT) continue;
    const onnx::AttributeProto* given = find_attribute(node, name);
    if (given == nullptr && !attribute.default_value.has_f()) continue;
    float value = given != nullptr ? given->f() : attribute.default_value.f();
    round_values(spec, &value, &value, 1);
    set_attribute(node, name, value);
  }
}

}  // namespace tenonnx
