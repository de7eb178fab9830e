// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/constant_part.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/graph.h"
#include "model/tensor_proto.h"
#include "passes/edit.h"
#include "passes/fold_region.h"
#include "passes/fold_rules.h"

namespace tenonnx {
namespace {

class Computer {
 public:
  Computer(const Model& model,
           const std::function<std::optional<TensorInfo>(std::string_view)>& info_of)
      : model_(model), graph_(model.proto().graph()), info_of_(info_of) {
    for (const auto& input : graph_.input()) defined_.insert(input.name());
    // An initializer that is an input too is a default that the caller may override.
    for (const auto& tensor : graph_.initializer())
      if (!defined_.contains(tensor.name())) constants_.emplace(tensor.name(), &tensor);
    for (const auto& output : graph_.output()) outputs_.insert(output.name());
  }

  Result<ComputedConstants> run() {
    for (const auto& node : graph_.node()) {
      if (is_output(node) || !take(node)) {
        for (const std::string_view name : all_inputs(node)) used_.insert(name);
        continue;
      }
      computed_.insert(&node);
    }
    TENONNX_ASSIGN_OR_RETURN(const auto values, values_of_used());
    auto proto = std::make_unique<onnx::ModelProto>(model_.proto());
    int next = 0;  // the copy has the nodes of the graph in their order
    erase_nodes(*proto->mutable_graph(),
                [&](const onnx::NodeProto&) { return computed_.contains(&graph_.node(next++)); });
    for (const onnx::TensorProto& tensor : made_up_)
      if (used_.contains(tensor.name())) *proto->mutable_graph()->add_initializer() = tensor;
    for (const auto& [name, tensor] : values)
      *proto->mutable_graph()->add_initializer() = to_tensor_proto(tensor, name);
    return ComputedConstants{model_.with_proto(std::move(proto)), std::move(shapes_)};
  }

 private:
  bool is_output(const onnx::NodeProto& node) const {
    return std::any_of(node.output().begin(), node.output().end(),
                       [&](const std::string& name) { return outputs_.contains(name); });
  }

  // True where all that it makes is known without the graph's inputs.
  bool take(const onnx::NodeProto& node) {
    if (node.op_type() == "Constant" && normalized_domain(node.domain()).empty()) {
      onnx::TensorProto value;
      if (!constant_value(node, value)) return false;
      make_up(std::move(value));
      return true;
    }
    const auto inputs = all_inputs(node);
    const bool constant = std::all_of(inputs.begin(), inputs.end(), [&](std::string_view name) {
      return constants_.contains(name) || made_.contains(name);
    });
    if (is_op(node, "Shape") && !constant) return take_shape(node);
    if (is_op(node, "CastLike") && !constant) return take_cast(node);
    if (!constant || inputs.empty() || never_folded(node)) return false;
    compute(node);
    return true;
  }

  void compute(const onnx::NodeProto& node) {
    region_.nodes.push_back(&node);
    for (const std::string& name : node.output())
      if (!name.empty()) made_.insert(name);
  }

  // Of a constant to the dtype of what is none: a Cast.
  bool take_cast(const onnx::NodeProto& node) {
    const std::string& value = node.input(0);
    if (!constants_.contains(value) && !made_.contains(value)) return false;
    const std::optional<TensorInfo> like = info_of_(node.input(1));
    if (!like || like->dtype == DType::kUndefined) return false;
    onnx::NodeProto& cast = casts_.emplace_back(node);
    cast.set_op_type("Cast");
    cast.mutable_input()->RemoveLast();
    set_attribute(cast, "to", static_cast<std::int64_t>(to_onnx_type(like->dtype)));
    compute(cast);
    return true;
  }

  bool take_shape(const onnx::NodeProto& node) {
    const std::optional<TensorInfo> info = info_of_(node.input(0));
    if (!info || !info->has_rank || element_count(info->shape) < 0) return false;
    shapes_.emplace(node.input(0), info->shape);
    make_up(to_tensor_proto(shape_value(node, info->shape), node.output(0)));
    return true;
  }

  void make_up(onnx::TensorProto value) {
    made_up_.push_back(std::move(value));
    constants_.emplace(made_up_.back().name(), &made_up_.back());
  }

  Result<std::map<std::string, Tensor>> values_of_used() {
    std::map<std::string, Tensor> values;
    for (const std::string_view name : made_)
      if (used_.contains(name))
        region_.outputs.push_back({std::string(name), DType::kUndefined, {}, false});
    if (region_.outputs.empty()) return values;
    std::sort(region_.outputs.begin(), region_.outputs.end(),
              [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
    std::unordered_set<const onnx::TensorProto*> taken;
    for (const onnx::NodeProto* node : region_.nodes)
      for (const std::string_view name : all_inputs(*node))
        if (const auto it = constants_.find(name);
            it != constants_.end() && taken.insert(it->second).second)
          region_.constants.push_back(it->second);
    TENONNX_ASSIGN_OR_RETURN(std::vector<Tensor> made, evaluate(model_, region_));
    for (std::size_t i = 0; i < made.size(); ++i)
      values.emplace(region_.outputs[i].name, std::move(made[i]));
    return values;
  }

  const Model& model_;
  const onnx::GraphProto& graph_;
  const std::function<std::optional<TensorInfo>(std::string_view)>& info_of_;
  std::unordered_set<std::string_view> defined_, outputs_;
  std::unordered_set<std::string_view> used_;  // by nodes that stay
  std::unordered_set<std::string_view> made_;  // by nodes that are computed
  std::unordered_map<std::string_view, const onnx::TensorProto*> constants_;
  std::deque<onnx::NodeProto> casts_;
  std::deque<onnx::TensorProto> made_up_;  // values of Constant and Shape nodes
  std::unordered_set<const onnx::NodeProto*> computed_;
  std::map<std::string, Shape> shapes_;
  Region region_;
};

}  // namespace

Result<ComputedConstants> compute_constants(
    const Model& model, const std::function<std::optional<TensorInfo>(std::string_view)>& info_of) {
  return Computer(model, info_of).run();
}

}  // namespace tenonnx
