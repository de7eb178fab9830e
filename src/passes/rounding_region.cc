// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/rounding_region.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "passes/constants.h"

namespace tenonnx {
namespace {

// What these give is an element of an input, an index, or a truth.
constexpr std::array<std::string_view, 40> kExact = {
    "Abs",       "And",      "ArgMax",    "ArgMin",   "Cast",          "CastLike", "Ceil",
    "Clip",      "Concat",   "Constant",  "Equal",    "Expand",        "Flatten",  "Floor",
    "Gather",    "GatherND", "Greater",   "Less",     "Max",           "Min",      "Neg",
    "Not",       "Or",       "Pad",       "Range",    "Relu",          "Reshape",  "ScatterND",
    "Shape",     "Sign",     "Slice",     "Split",    "Squeeze",       "Tile",     "TopK",
    "Transpose", "Where",    "Unsqueeze", "Identity", "GatherElements"};

bool is_exact(const onnx::NodeProto& node) {
  return normalized_domain(node.domain()).empty() &&
         std::find(kExact.begin(), kExact.end(), node.op_type()) != kExact.end();
}

bool has_no_effect(const Model& model, const GraphIndex& index, const onnx::NodeProto& node) {
  const auto either = [&](double value) {
    return std::any_of(node.input().begin(), node.input().end(), [&](const std::string& name) {
      const Value* found = index.find(name);
      if (found == nullptr || found->initializer == nullptr) return false;
      const auto tensor = model.tensor(*found->initializer);
      return tensor.ok() && holds_only(*tensor, value);
    });
  };
  if (node.op_type() == "Add" || node.op_type() == "Sub") return either(0) || either(-0.0);
  return (node.op_type() == "Mul" || node.op_type() == "Div" || node.op_type() == "Pow") &&
         either(1);
}

}  // namespace

bool may_round_otherwise(const Model& before, const GraphIndex& before_index,
                         const GraphIndex& after_index, const ChangedRegion& region) {
  std::map<std::string, int> rounded;  // before less after
  for (const int i : region.after) {
    const onnx::NodeProto& node = after_index.graph().node(i);
    if (!is_exact(node)) --rounded[node.op_type()];
  }
  std::map<std::string, int> optional;
  for (const int i : region.before) {
    const onnx::NodeProto& node = before_index.graph().node(i);
    if (is_exact(node)) continue;
    ++rounded[node.op_type()];
    if (has_no_effect(before, before_index, node)) ++optional[node.op_type()];
  }
  return std::any_of(rounded.begin(), rounded.end(), [&](const auto& one) {
    return one.second < 0 || one.second > optional[one.first];
  });
}

}  // namespace tenonnx
