// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenonnx {
namespace {

constexpr double kConstantTolerance = 1e-6;

}  // namespace

bool is_near(double value, double exact) {
  return std::fabs(value - exact) <= kConstantTolerance * std::fabs(exact);
}

std::optional<double> scalar_beside(const Rewriter& r, std::string_view name,
                                    std::string_view beside) {
  const Tensor* tensor = r.constant(name);
  if (tensor == nullptr || tensor->size() != 1) return std::nullopt;
  if (!tensor->shape().empty()) {
    const std::optional<Shape> shape = r.shape(beside);
    if (!shape || tensor->shape().size() > shape->size()) return std::nullopt;
  }
  return r.scalar(name);
}

std::string_view uncast(const Rewriter& r, std::string_view name, std::vector<int>& nodes) {
  for (int i = r.producer(name, "Cast"); i >= 0; i = r.producer(name, "Cast")) {
    const std::string_view input = r.node(i).input(0);
    const DType dtype = r.dtype(input);
    if (dtype == DType::kUndefined || dtype != r.dtype(name)) break;
    nodes.push_back(i);
    name = input;
  }
  return name;
}

std::string_view other_operand(const onnx::NodeProto& node, std::string_view name) {
  if (node.input_size() != 2) return {};
  if (node.input(0) != name) return node.input(0);
  return node.input(1) == name ? std::string_view() : std::string_view(node.input(1));
}

std::string used_outside(const Rewriter& r, const std::vector<int>& nodes, int last) {
  for (const int i : nodes) {
    if (i == last) continue;
    for (const std::string& name : r.node(i).output()) {
      const Value* value = r.index().find(name);
      if (value == nullptr) continue;
      if (value->is_output) return fmt::format("'{}' is an output of the graph", name);
      for (const Use& use : value->uses)
        if (use.input < 0 || std::find(nodes.begin(), nodes.end(), use.node) == nodes.end())
          return fmt::format("'{}' is used by {} too", name, node_label(r.node(use.node)));
    }
  }
  return {};
}

std::string opset_reason(const Rewriter& r, std::string_view op_type, int opset) {
  if (r.opset() >= opset) return {};
  return fmt::format(
      "{} came with opset {} and the model imports {}: run convert_opset with target={} first",
      op_type, opset, r.opset(), opset);
}

std::string float32_reason(const Rewriter& r, std::string_view name, std::string_view why) {
  const DType dtype = r.dtype(name);
  if (dtype == DType::kFloat32) return {};
  if (dtype == DType::kUndefined) return fmt::format("the dtype of '{}' is not known", name);
  return fmt::format("'{}' is {}, and only float32 is taken: {}", name, to_string(dtype), why);
}

Tensor float_scalar(double value) {
  return Tensor::from<float>(DType::kFloat32, {}, {static_cast<float>(value)});
}

}  // namespace tenonnx
