// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/fault_bounds.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "model/graph.h"
#include "numerics/values.h"

namespace tenonnx {
namespace {

// The largest (x - mean)^2 over rows of `length`.
double largest_square(const std::vector<double>& values, std::size_t length) {
  double out = 0;
  for (std::size_t i = 0; length > 0 && i + length <= values.size(); i += length) {
    double mean = 0;
    for (std::size_t k = 0; k < length; ++k) mean += values[i + k];
    mean /= static_cast<double>(length);
    for (std::size_t k = 0; k < length; ++k)
      if (const double d = values[i + k] - mean; std::isfinite(d)) out = std::max(out, d * d);
  }
  return out;
}

class Written {
 public:
  Written(onnx::GraphProto& graph, std::int64_t opset) : graph_(graph), opset_(opset) {}

  std::string add(const char* op, const std::vector<std::string>& inputs) {
    onnx::NodeProto& made = *graph_.add_node();
    made.set_op_type(op);
    for (const std::string& name : inputs) made.add_input(name);
    made.add_output("variant/" + std::to_string(count_++));
    return made.output(0);
  }
  std::string scalar(float value) {
    onnx::TensorProto& made = *graph_.add_initializer();
    made.set_name("variant/" + std::to_string(count_++));
    made.set_data_type(onnx::TensorProto::FLOAT);
    made.add_float_data(value);
    return made.name();
  }
  std::string mean(const std::string& of) {
    const std::string made = add("ReduceMean", {of});
    onnx::NodeProto& node = *graph_.mutable_node(graph_.node_size() - 1);
    if (opset_ >= 18) {
      onnx::TensorProto& axes = *graph_.add_initializer();
      axes.set_name("variant/" + std::to_string(count_++));
      axes.set_data_type(onnx::TensorProto::INT64);
      axes.add_dims(1);
      axes.add_int64_data(-1);
      node.add_input(axes.name());
    } else {
      onnx::AttributeProto& axes = *node.add_attribute();
      axes.set_name("axes");
      axes.set_type(onnx::AttributeProto::INTS);
      axes.add_ints(-1);
    }
    return made;
  }

 private:
  onnx::GraphProto& graph_;
  const std::int64_t opset_;
  int count_ = 0;
};

}  // namespace

Result<std::optional<NearestBound>> nearest_bound(double most, double least,
                                                  const std::vector<double>& got,
                                                  const AtBound& at) {
  std::optional<NearestBound> best;
  double error = INFINITY;
  const auto attempt = [&](double bound) -> Status {
    TENONNX_ASSIGN_OR_RETURN(auto values, at(bound));
    if (!values || values->size() != got.size()) return {};
    const double d = squared_distance(got, *values);
    if (!(d < error)) return {};
    error = d;
    best = NearestBound{bound, std::move(*values)};
    return {};
  };
  for (double bound = most * 0.95; bound > least; bound *= 0.9)
    TENONNX_RETURN_IF_ERROR(attempt(bound));
  for (double step = 0.05; best && step > 0.002; step /= 2) {
    const double around = best->bound;
    for (const double bound : {around * (1 - step), around * (1 + step)})
      TENONNX_RETURN_IF_ERROR(attempt(bound));
  }
  return best;
}

SquaresOfNorm::SquaresOfNorm(const PieceCase& one) : one_(one) {
  const auto& nodes = one.piece->proto().graph().node();
  int others = 0;
  for (int n = 0; n < nodes.size(); ++n) {
    if (nodes[n].op_type() == "LayerNormalization") node_ = n;
    others += nodes[n].op_type() != "Constant" ? 1 : 0;
  }
  if (node_ < 0 || others != 1 || one.inputs.size() != 1) return;
  const Tensor& input = one.inputs.begin()->second;
  const auto rank = static_cast<std::int64_t>(input.shape().size());
  const std::int64_t axis = attribute_or(nodes[node_], "axis", std::int64_t{-1});
  if (rank == 0 || (axis != -1 && axis != rank - 1)) return;
  largest_ = largest_square(values_of(input), static_cast<std::size_t>(input.shape().back()));
}

Model SquaresOfNorm::cut_off(double bound) const {
  Model model = one_.piece->clone();
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  const onnx::NodeProto norm = graph.node(node_);
  Written made(graph, model.opset());
  const std::string& x = norm.input(0);
  const std::string centred = made.add("Sub", {x, made.mean(x)});
  const std::string square = made.add("Mul", {centred, centred});
  const std::string bounded = made.add("Min", {square, made.scalar(static_cast<float>(bound))});
  const std::string epsilon = made.scalar(attribute_or(norm, "epsilon", 1e-5F));
  const std::string root = made.add("Sqrt", {made.add("Add", {made.mean(bounded), epsilon})});
  const std::string scaled = made.add("Mul", {made.add("Div", {centred, root}), norm.input(1)});
  onnx::NodeProto& last = *graph.mutable_node(node_);
  last.clear_attribute();
  last.clear_input();
  last.add_input(scaled);
  const bool biased = norm.input_size() > 2 && !norm.input(2).empty();
  last.set_op_type(biased ? "Add" : "Identity");
  if (biased) last.add_input(norm.input(2));
  static_cast<void>(sort_nodes(graph).ok());  // there is no cycle in it
  return model;
}

}  // namespace tenonnx
