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

}  // namespace tenonnx
