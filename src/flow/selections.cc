// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/selections.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/status.h"
#include "model/shapes.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

bool is_used(const GraphIndex& index, const std::string& name) {
  if (name.empty()) return false;
  const Value* value = index.find(name);
  return value != nullptr && (value->is_output || !value->uses.empty());
}

// The limits, where all that are given are constants of one element.
std::optional<SuppressionSpec> suppression_of(const Model& model, const onnx::NodeProto& node) {
  SuppressionSpec spec;
  spec.center_point_box = attribute_or(node, "center_point_box", std::int64_t{0}) != 0;
  for (int i = 2; i < node.input_size() && i < 5; ++i) {
    if (node.input(i).empty()) continue;
    const auto constant = model.constant(node.input(i));
    if (!constant.ok() || constant->size() != 1) return std::nullopt;
    if (i == 2) {
      if (constant->dtype() != DType::kInt64) return std::nullopt;
      spec.max_output = constant->data<std::int64_t>()[0];
    } else {
      if (constant->dtype() != DType::kFloat32) return std::nullopt;
      (i == 3 ? spec.iou_threshold : spec.score_threshold) = constant->data<float>()[0];
    }
  }
  return spec;
}

}  // namespace

std::vector<Selection> find_selections(const Model& model, const GraphIndex& index) {
  const onnx::GraphProto& graph = model.proto().graph();
  std::vector<Selection> found;
  for (int i = 0; i < graph.node_size(); ++i) {
    const onnx::NodeProto& node = graph.node(i);
    if (!normalized_domain(node.domain()).empty()) continue;
    Selection one;
    one.label = node_label(node);
    one.op_type = node.op_type();
    one.node = i;
    if (node.op_type() == "TopK" && node.output_size() == 2) {
      one.scores = node.input(0);
      one.indices = node.output(1);
      if (is_used(index, node.output(0))) one.values = node.output(0);
      one.spec.axis = static_cast<int>(attribute_or(node, "axis", std::int64_t{-1}));
      one.spec.largest = attribute_or(node, "largest", std::int64_t{1}) != 0;
      one.spec.sorted = attribute_or(node, "sorted", std::int64_t{1}) != 0;
    } else if ((node.op_type() == "ArgMax" || node.op_type() == "ArgMin") &&
               node.output_size() == 1) {
      one.scores = node.input(0);
      one.indices = node.output(0);
      one.spec.axis = static_cast<int>(attribute_or(node, "axis", std::int64_t{0}));
      one.spec.largest = node.op_type() == "ArgMax";
    } else if (node.op_type() == "NonMaxSuppression" && node.output_size() == 1) {
      one.indices = node.output(0);
      one.suppression = suppression_of(model, node);
      if (one.suppression) {
        one.boxes = node.input(0);
        one.scores = node.input(1);
      }
    } else {
      continue;
    }
    if (is_used(index, one.indices)) found.push_back(std::move(one));
  }
  return found;
}

Behind behind_selections(const GraphIndex& index, const std::vector<Selection>& selections) {
  Behind behind;
  std::unordered_map<int, int> at;
  for (std::size_t i = 0; i < selections.size(); ++i) at[selections[i].node] = static_cast<int>(i);
  const onnx::GraphProto& graph = index.graph();
  for (int i = 0; i < graph.node_size(); ++i) {
    std::set<int> reached;
    const auto add = [&](std::string_view name) {
      const auto found = behind.find(std::string(name));
      if (found != behind.end()) reached.insert(found->second.begin(), found->second.end());
    };
    for (const std::string& input : graph.node(i).input()) add(input);
    for (const std::string_view name : index.captures(i)) add(name);
    if (const auto own = at.find(i); own != at.end()) reached.insert(own->second);
    if (reached.empty()) continue;
    for (const std::string& output : graph.node(i).output())
      if (!output.empty()) behind[output] = reached;
  }
  return behind;
}

Result<Model> force_selections(const Model& model, const std::vector<Selection>& selections,
                               const std::set<int>& which) {
  if (which.empty()) return model.clone();
  if (model.opset() < 11)
    return Unsupported(
        "selections are fixed by GatherElements, which opset {} does not have (11 "
        "or later does)",
        model.opset());
  std::vector<std::string> names;
  for (const int i : which) names.push_back(selections[static_cast<std::size_t>(i)].indices);
  const TensorInfos types = infer_shapes(model, names);
  Model forced = model.clone();
  onnx::GraphProto& graph = *forced.mutable_proto().mutable_graph();
  std::set<int> gone;
  for (const int i : which) {
    const Selection& one = selections[static_cast<std::size_t>(i)];
    const auto type = types.find(one.indices);
    if (type == types.end())
      return FailedPrecondition("the type of '{}', which {} makes, is not known", one.indices,
                                one.label);
    TensorInfo info = type->second;
    info.name = one.indices;
    *graph.add_input() = to_value_info(info);
    onnx::NodeProto& node = *graph.mutable_node(one.node);
    if (one.values.empty()) {
      gone.insert(one.node);
      continue;
    }
    onnx::NodeProto gather;
    gather.set_op_type("GatherElements");
    gather.set_name(node.name());
    gather.add_input(one.scores);
    gather.add_input(one.indices);
    gather.add_output(one.values);
    onnx::AttributeProto& axis = *gather.add_attribute();
    axis.set_name("axis");
    axis.set_type(onnx::AttributeProto::INT);
    axis.set_i(one.spec.axis);
    node = std::move(gather);
  }
  for (auto i = gone.rbegin(); i != gone.rend(); ++i) graph.mutable_node()->DeleteSubrange(*i, 1);
  return forced;
}

}  // namespace tenonnx
