// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A LayerNormalization that is written out, with an end to what its squares can be.
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "model/graph.h"
#include "numerics/fault_kind.h"
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

std::vector<PieceVariant> square_bound_variants(const PieceCase& one) {
  const auto& nodes = one.piece->proto().graph().node();
  int node = -1, others = 0;
  for (int n = 0; n < nodes.size(); ++n) {
    if (nodes[n].op_type() == "LayerNormalization") node = n;
    others += nodes[n].op_type() != "Constant" ? 1 : 0;
  }
  if (node < 0 || others != 1 || one.inputs.size() != 1) return {};
  const Tensor& input = one.inputs.begin()->second;
  const auto rank = static_cast<std::int64_t>(input.shape().size());
  const std::int64_t axis = attribute_or(nodes[node], "axis", std::int64_t{-1});
  if (rank == 0 || (axis != -1 && axis != rank - 1)) return {};
  const double most =
      largest_square(values_of(input), static_cast<std::size_t>(input.shape().back()));
  std::vector<PieceVariant> out;
  for (double bound = most * 0.95; most > 0 && bound > most / 256; bound *= 0.9) {
    Model model = one.piece->clone();
    onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
    const onnx::NodeProto norm = graph.node(node);
    Written made(graph, model.opset());
    const std::string& x = norm.input(0);
    const std::string centred = made.add("Sub", {x, made.mean(x)});
    const std::string square = made.add("Mul", {centred, centred});
    const std::string bounded = made.add("Min", {square, made.scalar(static_cast<float>(bound))});
    const std::string epsilon = made.scalar(attribute_or(norm, "epsilon", 1e-5F));
    const std::string root = made.add("Sqrt", {made.add("Add", {made.mean(bounded), epsilon})});
    std::string result = made.add("Div", {centred, root});
    result = made.add("Mul", {result, norm.input(1)});
    onnx::NodeProto& last = *graph.mutable_node(node);
    last.clear_attribute();
    last.clear_input();
    last.add_input(result);
    const bool biased = norm.input_size() > 2 && !norm.input(2).empty();
    last.set_op_type(biased ? "Add" : "Identity");
    if (biased) last.add_input(norm.input(2));
    if (sort_nodes(graph).ok())
      out.push_back({FaultKind::kRange,
                     fmt::format("what it gives with its squares cut off near {:.3g}", bound),
                     std::move(model)});
  }
  return out;
}

}  // namespace tenonnx
