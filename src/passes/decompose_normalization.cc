// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/decompose_normalization.h"

#include <fmt/format.h>

#include "passes/fusion.h"

namespace tenonnx {

std::string read_normalization(const Rewriter& r, const onnx::NodeProto& node,
                               NormalizationParts& parts) {
  const std::string& x = node.input(0);
  std::string reason = float32_reason(
      r, x, "the operator computes in float32, a chain of a narrower dtype would not");
  if (!reason.empty()) return reason;
  if (attribute_or(node, "stash_type", std::int64_t{1}) != 1)
    return "its stash_type is not 1 (float32)";
  parts.epsilon = attribute_or(node, "epsilon", 1e-5F);
  std::int64_t axis = attribute_or(node, "axis", std::int64_t{-1});
  if (axis >= 0) {
    const auto shape = r.shape(x);
    if (!shape)
      return fmt::format("its axis is counted from the front, and the rank of '{}' is not known",
                         x);
    axis -= static_cast<std::int64_t>(shape->size());
  }
  for (; axis < 0; ++axis) parts.axes.push_back(axis);
  return {};
}

std::string ChainWriter::add(const char* op_type, const std::vector<std::string>& inputs) {
  std::string out = r_.fresh(base_ + "/" + op_type);
  r_.insert(at_, make_node(op_type, inputs, {out}));
  return out;
}

std::string ChainWriter::constant(double value) {
  return r_.add_constant(base_ + "/constant", float_scalar(value));
}

std::string ChainWriter::mean(const std::string& x, const std::vector<std::int64_t>& axes) {
  const std::string out = r_.fresh(base_ + "/ReduceMean");
  onnx::NodeProto node = make_node("ReduceMean", {x}, {out});
  if (r_.opset() < 18) {
    set_attribute(node, "axes", axes);
  } else {
    const auto count = static_cast<std::int64_t>(axes.size());
    node.add_input(
        r_.add_constant(base_ + "/axes", Tensor::from<std::int64_t>(DType::kInt64, {count}, axes)));
  }
  set_attribute(node, "keepdims", std::int64_t{1});
  r_.insert(at_, std::move(node));
  return out;
}

std::string ChainWriter::root_mean_square(const std::string& x, const NormalizationParts& parts) {
  const std::string mean_square = mean(add("Mul", {x, x}), parts.axes);
  return add("Sqrt", {add("Add", {mean_square, constant(parts.epsilon)})});
}

}  // namespace tenonnx
