// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Faults of places: axes, layouts, coordinates, indices.
#include "base/status.h"
#include "classes.h"
#include "draws.h"
#include "edit.h"

namespace tenonnx::planted {
namespace {

std::vector<std::int64_t> other_axes(const Facts& facts, int n) {
  const onnx::NodeProto& node = facts.node(n);
  const Shape shape = facts.shape(node.output(0));
  const auto rank = static_cast<std::int64_t>(shape.size());
  std::int64_t axis = attribute_or(node, "axis", std::int64_t{-1});
  if (axis < 0) axis += rank;
  std::vector<std::int64_t> out;
  for (std::int64_t other = 0; other < rank; ++other)
    if (other != axis && shape[static_cast<std::size_t>(other)] > 1) out.push_back(other);
  return out;
}

bool has_axis(const Facts& facts, int n) {
  return facts.node(n).op_type() == "Softmax" && gives_floats(facts, n) &&
         !other_axes(facts, n).empty();
}

Fault draw_axis(const Facts& facts, int n, Random& random) {
  const std::int64_t axis = one_of(other_axes(facts, n), random);
  Fault fault;
  fault.text = fmt::format("axis {}", axis);
  fault.change = [=](Model& model, int node) { Edit::set(Edit(model, node).node(), "axis", axis); };
  return fault;
}

bool samples(const Facts& facts, int n) {
  const onnx::NodeProto& node = facts.node(n);
  if (!gives_floats(facts, n)) return false;
  return node.op_type() == "GridSample" ? facts.shape(node.input(0)).size() == 4
                                        : node.op_type() == "Resize";
}

Fault draw_half_pixel(const Facts& facts, int n, Random& random) {
  const onnx::NodeProto& node = facts.node(n);
  Fault fault;
  if (node.op_type() == "Resize") {
    const std::string mode = attribute_or(node, "coordinate_transformation_mode", "half_pixel");
    const std::string other = mode == "asymmetric" ? "half_pixel" : "asymmetric";
    fault.text = fmt::format("coordinates {} instead of {}", other, mode);
    fault.change = [=](Model& model, int at) {
      Edit::set(Edit(model, at).node(), "coordinate_transformation_mode", other);
    };
    return fault;
  }
  const float pixels = one_of<float>({-0.5F, 0.5F}, random);
  const Shape data = facts.shape(node.input(0));
  fault.text = fmt::format("{:g} pixel to the right and down", pixels);
  fault.change = [=](Model& model, int at) {
    Edit edit(model, at);
    const std::string shift = edit.floats(
        {2 * pixels / static_cast<float>(data[3]), 2 * pixels / static_cast<float>(data[2])}, {2});
    edit.node().set_input(1, edit.apply("Add", {edit.node().input(1), shift}));
  };
  return fault;
}

Fault draw_corners(const Facts& facts, int n, Random&) {
  const onnx::NodeProto& node = facts.node(n);
  const std::int64_t corners = attribute_or(node, "align_corners", std::int64_t{0});
  const bool resize = node.op_type() == "Resize";
  const std::string mode = attribute_or(node, "coordinate_transformation_mode", "half_pixel");
  Fault fault;
  fault.text = "align_corners flipped";
  fault.change = [=](Model& model, int at) {
    Edit edit(model, at);
    if (resize)
      Edit::set(edit.node(), "coordinate_transformation_mode",
                std::string(mode == "align_corners" ? "half_pixel" : "align_corners"));
    else
      Edit::set(edit.node(), "align_corners", 1 - corners);
  };
  return fault;
}

bool takes_indices(const Facts& facts, int n) {
  const onnx::NodeProto& node = facts.node(n);
  return is_one_of(node.op_type(), {"Gather", "GatherElements"}) && gives_floats(facts, n) &&
         facts.is_computed(node.input(1)) && !facts.shape(node.input(0)).empty();
}

// Whole numbers up to 256 in bfloat16, up to 2048 in float16; the next ones go to their neighbours.
Fault draw_indices(const Facts& facts, int n, Random& random) {
  const onnx::NodeProto& node = facts.node(n);
  const Shape data = facts.shape(node.input(0));
  std::int64_t axis = attribute_or(node, "axis", std::int64_t{0});
  if (axis < 0) axis += static_cast<std::int64_t>(data.size());
  const std::int64_t last = data[static_cast<std::size_t>(axis)] - 1;
  const bool half = last > 2048 && random() % 2 == 0;
  Fault fault;
  fault.text = fmt::format("indices rounded to {}", half ? "float16" : "bfloat16");
  fault.change = [=](Model& model, int at) {
    Edit edit(model, at);
    const std::string rounded =
        edit.cast(edit.cast(edit.node().input(1),
                            half ? onnx::TensorProto::FLOAT16 : onnx::TensorProto::BFLOAT16),
                  onnx::TensorProto::INT64);
    edit.node().set_input(1, edit.apply("Min", {rounded, edit.integers({last})}));
  };
  return fault;
}

bool has_layout(const Facts& facts, int n) {
  const onnx::NodeProto& node = facts.node(n);
  if (!gives_floats(facts, n) ||
      !is_one_of(node.op_type(), {"Conv", "MatMul", "Reshape", "Transpose", "Gather",
                                  "GatherElements", "Concat", "Resize", "GridSample"}))
    return false;
  const Shape shape = facts.shape(node.output(0));
  if (shape.size() < 3) return false;
  return shape[shape.size() - 1] > 1 && shape[shape.size() - 2] > 1;
}

Fault draw_layout(const Facts& facts, int n, Random&) {
  const Shape shape = facts.shape(facts.node(n).output(0));
  const auto rank = static_cast<std::int64_t>(shape.size());
  std::vector<std::int64_t> perm;
  // NCHW written as NHWC; others with their last two axes exchanged.
  if (facts.node(n).op_type() == "Conv" && rank == 4) {
    perm = {0, 2, 3, 1};
  } else {
    for (std::int64_t d = 0; d < rank; ++d) perm.push_back(d);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  }
  Fault fault;
  fault.text = fmt::format("written as [{}] and read as if not", fmt::join(perm, ", "));
  fault.change = [=](Model& model, int at) {
    Edit edit(model, at);
    const std::string right = edit.take_output();
    onnx::NodeProto& turn = edit.add("Transpose", {right});
    Edit::set(turn, "perm", perm);
    edit.finish(edit.apply("Reshape", {turn.output(0), edit.integers(shape)}));
  };
  return fault;
}

bool has_pairs(const Facts& facts, int n) {
  const onnx::NodeProto& node = facts.node(n);
  if (!gives_floats(facts, n)) return false;
  if (node.op_type() == "GridSample") return samples(facts, n);
  if (!is_one_of(node.op_type(),
                 {"Concat", "MatMul", "Gemm", "Add", "Sub", "Mul", "Div", "Sigmoid"}))
    return false;
  const Shape shape = facts.shape(node.output(0));
  return shape.size() >= 2 && (shape.back() == 2 || shape.back() == 4);
}

Fault draw_pairs(const Facts& facts, int n, Random&) {
  const onnx::NodeProto& node = facts.node(n);
  const bool grid = node.op_type() == "GridSample";
  const std::int64_t length = grid ? 2 : facts.shape(node.output(0)).back();
  Fault fault;
  fault.text = "first and second of each pair exchanged";
  fault.change = [=](Model& model, int at) {
    Edit edit(model, at);
    const std::string order = edit.integers(length == 2 ? std::vector<std::int64_t>{1, 0}
                                                        : std::vector<std::int64_t>{1, 0, 3, 2});
    onnx::NodeProto& turn = edit.add("Gather", {"", order});
    Edit::set(turn, "axis", std::int64_t{-1});
    if (grid) {
      turn.set_input(0, edit.node().input(1));
      edit.node().set_input(1, turn.output(0));
    } else {
      turn.set_input(0, edit.take_output());
      edit.finish(turn.output(0));
    }
  };
  return fault;
}

}  // namespace

void add_place_classes(std::vector<FaultClass>& to) {
  to.push_back({"axis swap", {FaultKind::kLayout}, "", has_axis, draw_axis});
  to.push_back({"half-pixel shift", {FaultKind::kSampling}, "", samples, draw_half_pixel});
  to.push_back({"align_corners flip", {FaultKind::kSampling}, "", samples, draw_corners});
  to.push_back({"index rounding", {FaultKind::kIndices}, "", takes_indices, draw_indices});
  to.push_back({"layout transpose", {FaultKind::kLayout}, "", has_layout, draw_layout});
  to.push_back({"[h, w] for [w, h]",
                {FaultKind::kLayout, FaultKind::kSampling},
                "at a sampling node exchanged coordinates are other coordinates, elsewhere values "
                "in other places",
                has_pairs,
                draw_pairs});
}

const std::vector<FaultClass>& fault_classes() {
  static const std::vector<FaultClass> classes = [] {
    std::vector<FaultClass> out;
    add_value_classes(out);
    add_place_classes(out);
    return out;
  }();
  return classes;
}

}  // namespace tenonnx::planted
