// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Mistakes that compilers and converters are known to make with one operator, as graphs.
#include <onnx/onnx_pb.h>

#include <functional>

#include "base/status.h"
#include "model/graph.h"
#include "numerics/fault_kind.h"
#include "passes/edit.h"

namespace tenonnx {
namespace {

using Change = std::function<void(onnx::GraphProto&, onnx::NodeProto&)>;

class Variants {
 public:
  explicit Variants(const PieceCase& one) : one_(one) {}

  std::vector<PieceVariant> make() {
    int node = -1;
    const auto& nodes = one_.piece->proto().graph().node();
    for (int n = 0; n < nodes.size(); ++n) {
      if (nodes[n].op_type() == "Constant") continue;
      if (node >= 0) return {};  // a piece of several: which of them is not known
      node = n;
    }
    if (node < 0) return {};
    node_ = node;
    const onnx::NodeProto& found = nodes[node];
    const std::string& op = found.op_type();
    if (op == "GridSample") add_sampling(found);
    if (op == "Resize") add_resize(found);
    if (op == "Softmax" || op == "LogSoftmax" || op == "LayerNormalization") add_axes(found);
    if (op.ends_with("Normalization")) add_epsilons(found);
    if (op.starts_with("Gather")) add_indices();
    if (op == "MatMul" || op == "Gemm") add_transposed_weights(found);
    if (op == "Add") add_missing_addend(found);
    return std::move(out_);
  }

 private:
  void add(FaultKind kind, std::string text, const Change& change) {
    Model model = one_.piece->clone();
    onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
    change(graph, *graph.mutable_node(node_));
    if (!sort_nodes(graph).ok()) return;
    out_.push_back({kind, std::move(text), std::move(model)});
  }

  // `changed` = op(input, constant) before `node` reads it.
  static void put_before(onnx::GraphProto& graph, onnx::NodeProto& node, int input, const char* op,
                         const std::vector<float>& values, const std::vector<std::int64_t>& shape) {
    onnx::TensorProto& constant = *graph.add_initializer();
    constant.set_name("variant/constant");
    constant.set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t length : shape) constant.add_dims(length);
    for (const float v : values) constant.add_float_data(v);
    const std::string before = node.input(input);
    node.set_input(input, "variant/changed");
    onnx::NodeProto& made = *graph.add_node();
    made.set_op_type(op);
    made.add_input(before);
    made.add_input("variant/constant");
    made.add_output("variant/changed");
  }

  Shape shape_of(const std::string& name) const {
    if (const auto found = one_.inputs.find(name); found != one_.inputs.end())
      return found->second.shape();
    const auto constant = one_.piece->constant(name);
    return constant.ok() ? constant->shape() : Shape{};
  }

  void add_sampling(const onnx::NodeProto& node) {
    const std::int64_t corners = attribute_or(node, "align_corners", std::int64_t{0});
    add(FaultKind::kSampling, fmt::format("align_corners = {} instead of {}", 1 - corners, corners),
        [&](auto&, onnx::NodeProto& n) { set_attribute(n, "align_corners", 1 - corners); });
    const std::string padding = attribute_or(node, "padding_mode", "zeros");
    for (const char* other : {"zeros", "border", "reflection"})
      if (padding != other)
        add(FaultKind::kSampling, fmt::format("padding_mode = {} instead of {}", other, padding),
            [&](auto&, onnx::NodeProto& n) {
              set_attribute(n, "padding_mode", std::string_view(other));
            });
    const bool linear = one_.piece->opset() >= 20;
    const std::string mode = attribute_or(node, "mode", linear ? "linear" : "bilinear");
    const std::vector<std::string> modes =
        linear ? std::vector<std::string>{"linear", "nearest", "cubic"}
               : std::vector<std::string>{"bilinear", "nearest", "bicubic"};
    for (const std::string& other : modes)
      if (mode != other)
        add(FaultKind::kSampling, fmt::format("mode = {} instead of {}", other, mode),
            [&](auto&, onnx::NodeProto& n) { set_attribute(n, "mode", other); });
    const Shape data = shape_of(node.input(0));
    const Shape grid = shape_of(node.input(1));
    if (data.size() != 4 || grid.size() != 4) return;
    const double h = static_cast<double>(data[2]), w = static_cast<double>(data[3]);
    for (const double pixels : {-0.5, 0.5, -1.0, 1.0})
      add(FaultKind::kSampling,
          fmt::format("every place {} pixel instead of 0 to the right and down", pixels),
          [&](onnx::GraphProto& graph, onnx::NodeProto& n) {
            put_before(graph, n, 1, "Add",
                       {static_cast<float>(2 * pixels / w), static_cast<float>(2 * pixels / h)},
                       {2});
          });
    add(FaultKind::kSampling, "x and y instead of y and x: the grid's pairs exchanged",
        [&](onnx::GraphProto& graph, onnx::NodeProto& n) {
          onnx::TensorProto& order = *graph.add_initializer();
          order.set_name("variant/order");
          order.set_data_type(onnx::TensorProto::INT64);
          order.add_dims(2);
          order.add_int64_data(1);
          order.add_int64_data(0);
          onnx::NodeProto& made = *graph.add_node();
          made.set_op_type("Gather");
          made.add_input(n.input(1));
          made.add_input("variant/order");
          made.add_output("variant/changed");
          set_attribute(made, "axis", std::int64_t{3});
          n.set_input(1, "variant/changed");
        });
  }

  void add_resize(const onnx::NodeProto& node) {
    const std::string mode = attribute_or(node, "coordinate_transformation_mode", "half_pixel");
    for (const char* other : {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"})
      if (mode != other)
        add(FaultKind::kSampling,
            fmt::format("coordinate_transformation_mode = {} instead of {}", other, mode),
            [&](auto&, onnx::NodeProto& n) {
              set_attribute(n, "coordinate_transformation_mode", std::string_view(other));
            });
    const std::string nearest = attribute_or(node, "nearest_mode", "round_prefer_floor");
    for (const char* other : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
      if (nearest != other)
        add(FaultKind::kSampling, fmt::format("nearest_mode = {} instead of {}", other, nearest),
            [&](auto&, onnx::NodeProto& n) {
              set_attribute(n, "nearest_mode", std::string_view(other));
            });
    for (const char* other : {"nearest", "linear", "cubic"})
      if (attribute_or(node, "mode", "nearest") != other)
        add(FaultKind::kSampling,
            fmt::format("mode = {} instead of {}", other, attribute_or(node, "mode", "nearest")),
            [&](auto&, onnx::NodeProto& n) { set_attribute(n, "mode", std::string_view(other)); });
  }

  void add_axes(const onnx::NodeProto& node) {
    const auto rank = static_cast<std::int64_t>(one_.expected.shape().size());
    const std::int64_t axis = attribute_or(node, "axis", std::int64_t{-1});
    for (std::int64_t other = 0; other < rank; ++other)
      if (other != (axis < 0 ? axis + rank : axis))
        add(FaultKind::kLayout, fmt::format("axis = {} instead of {}", other, axis),
            [&](auto&, onnx::NodeProto& n) { set_attribute(n, "axis", other); });
  }

  void add_epsilons(const onnx::NodeProto& node) {
    const float epsilon = attribute_or(node, "epsilon", 1e-5F);
    for (const float other :
         {0.F, 1e-12F, 1e-8F, 1e-7F, 1e-6F, 1e-5F, 1e-4F, 1e-3F, 1e-2F, 0.1F, 1.F})
      if (other != epsilon)
        add(FaultKind::kEpsilon, fmt::format("epsilon = {:g} instead of {:g}", other, epsilon),
            [&](auto&, onnx::NodeProto& n) { set_attribute(n, "epsilon", other); });
  }

  // Indices that went through a type of few digits.
  void add_indices() {
    for (const auto type : {onnx::TensorProto::FLOAT16, onnx::TensorProto::BFLOAT16})
      add(FaultKind::kIndices,
          fmt::format("indices that went through {}",
                      type == onnx::TensorProto::FLOAT16 ? "float16" : "bfloat16"),
          [&](onnx::GraphProto& graph, onnx::NodeProto& n) {
            std::string name = n.input(1);
            for (const auto to : {static_cast<std::int64_t>(type),
                                  static_cast<std::int64_t>(onnx::TensorProto::INT64)}) {
              onnx::NodeProto& cast = *graph.add_node();
              cast.set_op_type("Cast");
              cast.add_input(name);
              name = fmt::format("variant/cast_{}", to);
              cast.add_output(name);
              set_attribute(cast, "to", to);
            }
            n.set_input(1, name);
          });
  }

  void add_transposed_weights(const onnx::NodeProto& node) {
    for (int input = 0; input < 2 && input < node.input_size(); ++input) {
      const auto constant = one_.piece->constant(node.input(input));
      if (!constant.ok() || constant->shape().size() != 2) continue;
      if (constant->shape()[0] != constant->shape()[1]) continue;
      add(FaultKind::kLayout, "its weights transposed",
          [&](onnx::GraphProto& graph, onnx::NodeProto& n) {
            onnx::NodeProto& turn = *graph.add_node();
            turn.set_op_type("Transpose");
            turn.add_input(n.input(input));
            turn.add_output("variant/turned");
            n.set_input(input, "variant/turned");
          });
    }
  }

  // A bias that is not there.
  void add_missing_addend(const onnx::NodeProto& node) {
    for (int input = 0; input < 2; ++input) {
      if (!one_.piece->constant(node.input(input)).ok()) continue;
      const int other = 1 - input;
      add(FaultKind::kWeights, "the constant addend left out", [&](auto&, onnx::NodeProto& n) {
        const std::string kept = n.input(other);
        n.clear_input();
        n.add_input(kept);
        n.set_op_type("Identity");
      });
    }
  }

  const PieceCase& one_;
  int node_ = -1;
  std::vector<PieceVariant> out_;
};

}  // namespace

std::vector<PieceVariant> variants_of(const PieceCase& one) { return Variants(one).make(); }

}  // namespace tenonnx
