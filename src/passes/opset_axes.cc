// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/opset_axes.h"

#include <algorithm>

#include "base/status.h"
#include "model/graph.h"
#include "passes/constants.h"
#include "passes/edit.h"

namespace tenonnx::opset {
namespace {

// Removes an input and the empty ones that then stand last.
void drop_input(onnx::NodeProto& node, int index) {
  node.set_input(index, "");
  while (node.input_size() > 0 && node.input(node.input_size() - 1).empty())
    node.mutable_input()->RemoveLast();
}

}  // namespace

Adapted refused(std::string why) { return {false, std::move(why)}; }

bool has_input(const onnx::NodeProto& node, int index) {
  return index < node.input_size() && !node.input(index).empty();
}

std::optional<std::vector<std::int64_t>> integers(const AdaptContext& context,
                                                  std::string_view name) {
  const auto t = context.constant(name);
  return t ? integers_of(*t) : std::nullopt;
}

std::optional<Shape> known_shape(const AdaptContext& context, std::string_view name) {
  const InferredType* type = context.type(name);
  if (type == nullptr || !type->has_shape) return std::nullopt;
  return type->shape;
}

// ---- Reduce*-18: axes from an attribute to an input; noop_with_empty_axes is new.

Adapted reduce_up(onnx::NodeProto& node, AdaptContext& context) {
  const auto* attribute = find_attribute(node, "axes");
  if (attribute == nullptr) return {};
  const std::vector<std::int64_t> axes = attribute_ints(node, "axes");
  remove_attribute(node, "axes");
  // An empty list means all axes on both sides, and so does no list.
  if (axes.empty()) return {true, "the empty attribute 'axes' goes"};
  node.add_input(context.add_constant(node.output(0) + "_axes", int64_vector(axes)));
  return {true, "attribute 'axes' becomes an input"};
}

Adapted reduce_down(onnx::NodeProto& node, AdaptContext& context) {
  std::vector<std::int64_t> axes;
  if (has_input(node, 1)) {
    const auto values = integers(context, node.input(1));
    if (!values) return refused("its axes are not constant: before opset 18 they are an attribute");
    axes = *values;
  }
  if (axes.empty() && attribute_or(node, "noop_with_empty_axes", std::int64_t{0}) != 0)
    return refused("noop_with_empty_axes = 1 without axes: before opset 18 it would reduce all");
  remove_attribute(node, "noop_with_empty_axes");
  if (has_input(node, 1)) drop_input(node, 1);
  if (axes.empty()) return {};
  set_attribute(node, "axes", axes);
  return {true, "input 'axes' becomes an attribute"};
}

// ---- Split-18: either sizes or num_outputs must be given; the last part may be smaller.

Adapted split_up(onnx::NodeProto& node, AdaptContext& /*context*/) {
  if (has_input(node, 1)) return {};
  set_attribute(node, "num_outputs", std::int64_t{node.output_size()});
  return {true, fmt::format("num_outputs = {} is written out", node.output_size())};
}

Adapted split_down(onnx::NodeProto& node, AdaptContext& context) {
  if (find_attribute(node, "num_outputs") == nullptr) return {};
  const auto shape = known_shape(context, node.input(0));
  std::int64_t axis = attribute_or(node, "axis", std::int64_t{0});
  if (shape && axis < 0) axis += static_cast<std::int64_t>(shape->size());
  const std::int64_t size = shape && axis >= 0 && axis < static_cast<std::int64_t>(shape->size())
                                ? (*shape)[static_cast<std::size_t>(axis)]
                                : -1;
  const std::int64_t parts = node.output_size();
  if (size < 0)
    return refused("the size of the dimension that it splits is not known: it may divide unevenly");
  remove_attribute(node, "num_outputs");
  if (size % parts == 0) return {true, "num_outputs goes: the parts are equal"};
  const std::int64_t part = (size + parts - 1) / parts;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), part);
  sizes.back() = size - part * (parts - 1);
  if (sizes.back() < 0) return refused("it has more outputs than elements to split");
  while (node.input_size() < 2) node.add_input("");
  node.set_input(1, context.add_constant(node.output(0) + "_split", int64_vector(sizes)));
  return {true, "num_outputs becomes sizes: the parts are not equal"};
}

// ---- Resize-18: antialias, axes, keep_aspect_ratio_policy. Resize-19: half_pixel_symmetric.

namespace {

// The constant `name` of one value an axis, with `rest` for the other axes.
template <typename T>
std::optional<std::vector<T>> widen(const Tensor& values, const std::vector<std::int64_t>& axes,
                                    std::vector<T> rest) {
  if (values.size() != static_cast<std::int64_t>(axes.size())) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(rest.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank) return std::nullopt;
    rest[static_cast<std::size_t>(axis)] = values.data<T>()[i];
  }
  return rest;
}

Adapted resize_axes_down(onnx::NodeProto& node, AdaptContext& context) {
  const std::vector<std::int64_t> axes = attribute_ints(node, "axes");
  const auto shape = known_shape(context, node.input(0));
  if (!shape) return refused("axes are given and the rank of its input is not known");
  if (has_input(node, 1) &&
      attribute_or(node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
    return refused("axes are given together with a region of interest");
  const std::int64_t rank = static_cast<std::int64_t>(shape->size());
  const int which = has_input(node, 2) ? 2 : 3;
  const auto values = has_input(node, which) ? context.constant(node.input(which)) : std::nullopt;
  if (!values) return refused("axes are given and its scales or sizes are not constant");
  const std::string base = node.input(which) + "_all_axes";
  if (which == 2 && values->dtype() == DType::kFloat32) {
    const auto scales = widen<float>(*values, axes, std::vector<float>(shape->size(), 1.0F));
    if (!scales) return refused("its axes do not fit its scales");
    node.set_input(
        2, context.add_constant(base, Tensor::from<float>(DType::kFloat32, {rank}, *scales)));
  } else if (which == 3 && values->dtype() == DType::kInt64) {
    const auto sizes = widen<std::int64_t>(*values, axes, *shape);
    if (!sizes || std::any_of(sizes->begin(), sizes->end(), [](auto s) { return s < 0; }))
      return refused("axes are given and the sizes of the other axes are not known");
    node.set_input(3, context.add_constant(base, int64_vector(*sizes)));
  } else {
    return refused("axes are given with scales or sizes of an unexpected dtype");
  }
  remove_attribute(node, "axes");
  return {true, "scales or sizes are written out for all axes"};
}

}  // namespace

Adapted resize18_down(onnx::NodeProto& node, AdaptContext& context) {
  if (attribute_or(node, "antialias", std::int64_t{0}) != 0)
    return refused("antialias = 1: before opset 18 Resize has no antialiasing filter");
  if (has_input(node, 3) &&
      attribute_or(node, "keep_aspect_ratio_policy", "stretch") != std::string("stretch"))
    return refused("keep_aspect_ratio_policy other than 'stretch' does not exist before opset 18");
  remove_attribute(node, "antialias");
  remove_attribute(node, "keep_aspect_ratio_policy");
  if (find_attribute(node, "axes") != nullptr) return resize_axes_down(node, context);
  return {};
}

Adapted resize19_down(onnx::NodeProto& node, AdaptContext& /*context*/) {
  if (attribute_or(node, "coordinate_transformation_mode", "half_pixel") == "half_pixel_symmetric")
    return refused("coordinate_transformation_mode 'half_pixel_symmetric' came with opset 19");
  return {};
}

// ---- Pad-18: axes. Pad-19: mode wrap.

Adapted pad18_down(onnx::NodeProto& node, AdaptContext& context) {
  if (!has_input(node, 3)) return {};
  const auto axes = integers(context, node.input(3));
  const auto pads = integers(context, node.input(1));
  const auto shape = known_shape(context, node.input(0));
  if (!axes || !pads || !shape)
    return refused("axes are given, and they, its pads or the rank of its input are not constant");
  const std::size_t n = axes->size();
  if (pads->size() != 2 * n) return refused("its axes do not fit its pads");
  const auto rank = static_cast<std::int64_t>(shape->size());
  std::vector<std::int64_t> all(2 * shape->size(), 0);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t axis = (*axes)[i] < 0 ? (*axes)[i] + rank : (*axes)[i];
    if (axis < 0 || axis >= rank) return refused("an axis is outside its input's rank");
    all[static_cast<std::size_t>(axis)] = (*pads)[i];
    all[static_cast<std::size_t>(axis + rank)] = (*pads)[n + i];
  }
  node.set_input(1, context.add_constant(node.input(1) + "_all_axes", int64_vector(all)));
  drop_input(node, 3);
  return {true, "pads are written out for all axes"};
}

Adapted pad19_down(onnx::NodeProto& node, AdaptContext& /*context*/) {
  if (attribute_or(node, "mode", "constant") == "wrap")
    return refused("mode 'wrap' came with opset 19");
  return {};
}

}  // namespace tenonnx::opset
