// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/saturating_casts.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <optional>

#include "passes/edit.h"

namespace tenonnx {
namespace {

// 2^30 moved by up to 2^28 stays beyond bounds of up to 2^29.
constexpr std::int64_t kLargestBound = std::int64_t{1} << 29;
constexpr std::int64_t kLargestMove = std::int64_t{1} << 28;

bool copies_first_input(std::string_view op) {
  static const std::set<std::string_view> kOps = {
      "Identity", "Reshape", "Unsqueeze", "Squeeze",        "Flatten",  "Transpose", "Slice",
      "Expand",   "Tile",    "Gather",    "GatherElements", "GatherND", "Split"};
  return kOps.contains(op);
}

bool compares(std::string_view op) {
  return op == "Less" || op == "LessOrEqual" || op == "Greater" || op == "GreaterOrEqual";
}

class Walk {
 public:
  Walk(const Model& model, const GraphIndex& index, SaturatingCast& cast)
      : model_(model), index_(index), cast_(cast) {
    const onnx::NodeProto* from = index.producer(model.proto().graph().node(cast.node).input(0));
    whole_ =
        from != nullptr && (is_op(*from, "Floor") || is_op(*from, "Ceil") || is_op(*from, "Round"));
  }

  // `moved`: what constants have been added so far, at most.
  bool ends_everywhere(const std::string& name, std::int64_t moved) {
    if (moved > kLargestMove) return false;
    cast_.tensors.insert(name);
    const Value* value = index_.find(name);
    if (value == nullptr || value->is_output) return false;
    return std::all_of(value->uses.begin(), value->uses.end(),
                       [&](const Use& use) { return use.input >= 0 && ends_at(use, moved); });
  }

 private:
  bool ends_at(const Use& use, std::int64_t moved) {
    const onnx::NodeProto& node = model_.proto().graph().node(use.node);
    const std::string& op = node.op_type();
    if (!normalized_domain(node.domain()).empty()) return false;
    if (copies_first_input(op) && use.input == 0)
      return std::all_of(node.output().begin(), node.output().end(), [&](const std::string& out) {
        return out.empty() || ends_everywhere(out, moved);
      });
    if (op == "Add" || op == "Sub") {
      const auto by = magnitude(node.input(1 - use.input));
      return by && *by <= kLargestMove && ends_everywhere(node.output(0), moved + *by);
    }
    if (op == "Cast" && whole_ &&
        attribute_or(node, "to", std::int64_t{0}) == onnx::TensorProto::FLOAT &&
        node.input(0) == model_.proto().graph().node(cast_.node).output(0)) {
      cast_.returns.push_back(use.node);
      return true;
    }
    if (op == "Clip") return use.input == 0 && is_small(node, 1) && is_small(node, 2);
    return compares(op) && is_small(node, 1 - use.input);
  }

  bool is_small(const onnx::NodeProto& node, int input) const {
    if (input >= node.input_size() || node.input(input).empty()) return false;
    const auto bound = magnitude(node.input(input));
    return bound && *bound <= kLargestBound;
  }

  // The largest absolute value of an int64 constant.
  std::optional<std::int64_t> magnitude(const std::string& name) const {
    const Value* value = index_.find(name);
    if (value == nullptr || value->is_input) return std::nullopt;
    const auto tensor = model_.constant(name);
    if (!tensor.ok() || tensor->dtype() != DType::kInt64) return std::nullopt;
    std::int64_t largest = 0;
    for (std::int64_t i = 0; i < tensor->size(); ++i) {
      const std::int64_t v = tensor->data<std::int64_t>()[i];
      // -2^63 has no positive counterpart.
      if (v < -kSaturation || v > kSaturation) return std::nullopt;
      largest = std::max(largest, v < 0 ? -v : v);
    }
    return largest;
  }

  const Model& model_;
  const GraphIndex& index_;
  SaturatingCast& cast_;
  bool whole_ = false;  // the float that is cast is a whole number
};

}  // namespace

std::vector<SaturatingCast> saturating_casts(const Model& model, const GraphIndex& index,
                                             const Inference& inference) {
  std::vector<SaturatingCast> casts;
  const InferredTypes& types = inference.graphs.front();
  const onnx::GraphProto& graph = model.proto().graph();
  for (int i = 0; i < graph.node_size(); ++i) {
    const onnx::NodeProto& node = graph.node(i);
    if (!is_op(node, "Cast")) continue;
    const auto from = types.find(node.input(0));
    if (from == types.end() || from->second.onnx_type != onnx::TensorProto::FLOAT ||
        attribute_or(node, "to", std::int64_t{0}) != onnx::TensorProto::INT64)
      continue;
    SaturatingCast cast{i, {}, {}};
    if (Walk(model, index, cast).ends_everywhere(node.output(0), 0))
      casts.push_back(std::move(cast));
  }
  return casts;
}

}  // namespace tenonnx
