// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Source of every step: the operators' changelogs, ONNX 1.21 (docs/Changelog.md there).
#include "passes/opset_adapters.h"

#include <algorithm>
#include <numeric>

#include "base/status.h"
#include "model/graph.h"
#include "passes/edit.h"

namespace tenonnx {
namespace {

Adapted refused(std::string why) { return {false, std::move(why)}; }

bool has_input(const onnx::NodeProto& node, int index) {
  return index < node.input_size() && !node.input(index).empty();
}

// Removes an input and the empty ones that then stand last.
void drop_input(onnx::NodeProto& node, int index) {
  node.set_input(index, "");
  while (node.input_size() > 0 && node.input(node.input_size() - 1).empty())
    node.mutable_input()->RemoveLast();
}

std::optional<std::vector<std::int64_t>> integers(const AdaptContext& context,
                                                  std::string_view name) {
  const auto t = context.constant(name);
  if (!t) return std::nullopt;
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < t->size(); ++i) {
    if (t->dtype() == DType::kInt64)
      values.push_back(t->data<std::int64_t>()[i]);
    else if (t->dtype() == DType::kInt32)
      values.push_back(t->data<std::int32_t>()[i]);
    else
      return std::nullopt;
  }
  return values;
}

Tensor int64_vector(const std::vector<std::int64_t>& values) {
  return Tensor::from<std::int64_t>(DType::kInt64, {static_cast<std::int64_t>(values.size())},
                                    values);
}

std::optional<Shape> known_shape(const AdaptContext& context, std::string_view name) {
  const InferredType* type = context.type(name);
  if (type == nullptr || !type->has_shape) return std::nullopt;
  return type->shape;
}

Adapted same(onnx::NodeProto& /*node*/, AdaptContext& /*context*/) { return {}; }

// An attribute that the older schema lacks goes where it has the value that the older one implies.
Adapted drop_attribute(onnx::NodeProto& node, std::string_view name, bool neutral,
                       std::string_view why) {
  if (find_attribute(node, name) == nullptr) return {};
  if (!neutral) return refused(std::string(why));
  remove_attribute(node, name);
  return {true, fmt::format("attribute '{}' goes: it has its neutral value", name)};
}

// ---- GridSample-20: modes linear, cubic (before: bilinear, bicubic); any number of dimensions.

Adapted rename_mode(onnx::NodeProto& node, const char* fallback,
                    std::initializer_list<std::pair<std::string_view, std::string_view>> names) {
  const std::string mode = attribute_or(node, "mode", fallback);
  for (const auto& [from, to] : names) {
    if (mode != from) continue;
    const bool written = find_attribute(node, "mode") != nullptr;
    if (written && from == to) return {};
    set_attribute(node, "mode", to);
    return {true,
            fmt::format("mode '{}'{} becomes '{}'", mode, written ? "" : ", the default,", to)};
  }
  return refused(fmt::format("mode '{}' is none that GridSample has", mode));
}

Adapted grid_sample_up(onnx::NodeProto& node, AdaptContext& /*context*/) {
  return rename_mode(node, "bilinear",
                     {{"bilinear", "linear"}, {"bicubic", "cubic"}, {"nearest", "nearest"}});
}

Adapted grid_sample_down(onnx::NodeProto& node, AdaptContext& context) {
  const auto shape = known_shape(context, node.input(0));
  if (!shape) return refused("the rank of its input is not known: before opset 20 it must be 4");
  if (shape->size() != 4)
    return refused(
        fmt::format("its input has rank {}: before opset 20 it must be 4", shape->size()));
  return rename_mode(node, "linear",
                     {{"linear", "bilinear"}, {"cubic", "bicubic"}, {"nearest", "nearest"}});
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

// ---- Pooling: dilations (AveragePool-19, LpPool-18), ceil_mode (LpPool-18).

Adapted dilations_down(onnx::NodeProto& node, AdaptContext& /*context*/) {
  const std::vector<std::int64_t> dilations = attribute_ints(node, "dilations");
  return drop_attribute(
      node, "dilations",
      std::all_of(dilations.begin(), dilations.end(), [](auto d) { return d == 1; }),
      "dilations other than 1: the older operator has none");
}

Adapted lp_pool_down(onnx::NodeProto& node, AdaptContext& context) {
  if (Adapted a =
          drop_attribute(node, "ceil_mode", attribute_or(node, "ceil_mode", std::int64_t{0}) == 0,
                         "ceil_mode = 1: the older operator rounds down");
      !a.ok)
    return a;
  return dilations_down(node, context);
}

// ---- Casts and quantization. saturate and round_mode speak of 8-bit floats alone, which the check
// of types keeps out of the older operators.

Adapted saturate_down(onnx::NodeProto& node, AdaptContext& /*context*/) {
  return drop_attribute(node, "saturate", true, "");
}

Adapted round_mode_down(onnx::NodeProto& node, AdaptContext& /*context*/) {
  return drop_attribute(node, "round_mode", true, "");
}

Adapted block_size_down(onnx::NodeProto& node, AdaptContext& /*context*/) {
  return drop_attribute(node, "block_size", attribute_or(node, "block_size", std::int64_t{0}) == 0,
                        "block_size: blocked quantization came with opset 21");
}

// Goes where `type` of the tensor `name` implies it anyway.
Adapted output_dtype_down(onnx::NodeProto& node, const AdaptContext& context, std::string_view name,
                          int fallback) {
  const std::int64_t dtype = attribute_or(node, "output_dtype", std::int64_t{0});
  int implied = fallback;
  if (!name.empty()) {
    const InferredType* type = context.type(name);
    implied = type == nullptr ? 0 : type->onnx_type;
  }
  return drop_attribute(node, "output_dtype", dtype == 0 || dtype == implied,
                        "output_dtype is not the one that the older operator takes");
}

Adapted quantize21_down(onnx::NodeProto& node, AdaptContext& context) {
  if (Adapted a = block_size_down(node, context); !a.ok) return a;
  return output_dtype_down(node, context, has_input(node, 2) ? node.input(2) : std::string(),
                           onnx::TensorProto::UINT8);
}

Adapted quantize23_down(onnx::NodeProto& node, AdaptContext& /*context*/) {
  return drop_attribute(node, "precision", attribute_or(node, "precision", std::int64_t{0}) == 0,
                        "precision came with opset 23");
}

Adapted dequantize23_down(onnx::NodeProto& node, AdaptContext& context) {
  return output_dtype_down(node, context, node.input(1), 0);
}

// ---- Scatter: reduction add and mul at 16, min and max at 18.

Adapted scatter16_down(onnx::NodeProto& node, AdaptContext& /*context*/) {
  return drop_attribute(node, "reduction", attribute_or(node, "reduction", "none") == "none",
                        "a reduction: before opset 16 there is none");
}

Adapted scatter18_down(onnx::NodeProto& node, AdaptContext& /*context*/) {
  const std::string reduction = attribute_or(node, "reduction", "none");
  if (reduction == "min" || reduction == "max")
    return refused(fmt::format("reduction '{}' came with opset 18", reduction));
  return {};
}

// ---- Below 16.

Adapted reshape14_down(onnx::NodeProto& node, AdaptContext& context) {
  bool neutral = attribute_or(node, "allowzero", std::int64_t{0}) == 0;
  if (!neutral) {
    const auto target = integers(context, node.input(1));
    neutral = target && std::find(target->begin(), target->end(), 0) == target->end();
  }
  return drop_attribute(node, "allowzero", neutral, "allowzero = 1 and the target may hold a 0");
}

Adapted shape15_down(onnx::NodeProto& node, AdaptContext& /*context*/) {
  if (find_attribute(node, "start") != nullptr || find_attribute(node, "end") != nullptr)
    return refused("start or end: before opset 15 Shape gives all dimensions");
  return {};
}

Adapted batch_norm14_up(onnx::NodeProto& node, AdaptContext& /*context*/) {
  if (node.output_size() > 1) return refused("training outputs: opset 14 has others");
  return {};
}

Adapted batch_norm14_down(onnx::NodeProto& node, AdaptContext& /*context*/) {
  if (node.output_size() > 1) return refused("training outputs: opset 13 has others");
  return drop_attribute(node, "training_mode",
                        attribute_or(node, "training_mode", std::int64_t{0}) == 0,
                        "training_mode = 1");
}

// RoiAlign-16: coordinate_transformation_mode, whose default shifts by half a pixel.
Adapted roi_align_up(onnx::NodeProto& node, AdaptContext& /*context*/) {
  set_attribute(node, "coordinate_transformation_mode", "output_half_pixel");
  return {true, "coordinate_transformation_mode 'output_half_pixel' is written out"};
}

Adapted roi_align_down(onnx::NodeProto& node, AdaptContext& /*context*/) {
  if (attribute_or(node, "coordinate_transformation_mode", "half_pixel") != "output_half_pixel")
    return refused("coordinate_transformation_mode 'half_pixel' came with opset 16");
  remove_attribute(node, "coordinate_transformation_mode");
  return {true, "coordinate_transformation_mode goes"};
}

constexpr OpsetAdapter kAdapters[] = {
    {"BatchNormalization", 14, batch_norm14_up, batch_norm14_down},
    {"BatchNormalization", 15, same, same},  // type parameters alone
    {"Identity", 14, same, same},            // sequences
    {"Reshape", 14, same, reshape14_down},
    {"Shape", 15, same, shape15_down},
    {"RoiAlign", 16, roi_align_up, roi_align_down},
    {"ScatterElements", 16, same, scatter16_down},
    {"ScatterND", 16, same, scatter16_down},
    {"LpPool", 18, same, lp_pool_down},
    {"OptionalHasElement", 18, same, same},  // the input may be absent
    {"Pad", 18, same, pad18_down},
    {"ReduceL1", 18, reduce_up, reduce_down},
    {"ReduceL2", 18, reduce_up, reduce_down},
    {"ReduceLogSum", 18, reduce_up, reduce_down},
    {"ReduceLogSumExp", 18, reduce_up, reduce_down},
    {"ReduceMax", 18, reduce_up, reduce_down},
    {"ReduceMean", 18, reduce_up, reduce_down},
    {"ReduceMin", 18, reduce_up, reduce_down},
    {"ReduceProd", 18, reduce_up, reduce_down},
    {"ReduceSumSquare", 18, reduce_up, reduce_down},
    {"Resize", 18, same, resize18_down},
    {"ScatterElements", 18, same, scatter18_down},
    {"ScatterND", 18, same, scatter18_down},
    {"Split", 18, split_up, split_down},
    {"AveragePool", 19, same, dilations_down},
    {"Cast", 19, same, saturate_down},
    {"CastLike", 19, same, saturate_down},
    {"DequantizeLinear", 19, same, same},  // float16 scales
    {"Pad", 19, same, pad19_down},
    {"QuantizeLinear", 19, same, saturate_down},
    {"Resize", 19, same, resize19_down},
    {"GridSample", 20, grid_sample_up, grid_sample_down},
    {"DequantizeLinear", 21, same, block_size_down},
    {"QLinearMatMul", 21, same, same},  // float16 scales
    {"QuantizeLinear", 21, same, quantize21_down},
    {"DequantizeLinear", 23, same, dequantize23_down},
    {"QuantizeLinear", 23, same, quantize23_down},
    {"Cast", 24, same, round_mode_down},
    {"CastLike", 24, same, round_mode_down},
};

}  // namespace

const OpsetAdapter* find_opset_adapter(std::string_view op_type, int version) {
  for (const OpsetAdapter& adapter : kAdapters)
    if (adapter.op_type == op_type && adapter.version == version) return &adapter;
  return nullptr;
}

std::string_view advice_for_missing(std::string_view op_type) {
  if (op_type == "LayerNormalization") return "run decompose_layer_normalization first";
  if (op_type == "Gelu") return "run decompose_gelu first";
  if (op_type == "RMSNormalization") return "run decompose_rms_normalization first";
  if (op_type == "Swish") return "run decompose_silu first";
  if (op_type == "GridSample") return "replace it by gathers first, or stay at opset 16";
  return "";
}

}  // namespace tenonnx
