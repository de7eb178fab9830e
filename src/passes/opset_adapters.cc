// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Source of every step: the operators' changelogs, ONNX 1.21 (docs/Changelog.md there).
#include "passes/opset_adapters.h"

#include <algorithm>

#include "base/status.h"
#include "model/graph.h"
#include "passes/edit.h"
#include "passes/opset_axes.h"

namespace tenonnx {
namespace {

using opset::has_input, opset::integers, opset::known_shape, opset::refused;

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
    {"Pad", 18, same, opset::pad18_down},
    {"ReduceL1", 18, opset::reduce_up, opset::reduce_down},
    {"ReduceL2", 18, opset::reduce_up, opset::reduce_down},
    {"ReduceLogSum", 18, opset::reduce_up, opset::reduce_down},
    {"ReduceLogSumExp", 18, opset::reduce_up, opset::reduce_down},
    {"ReduceMax", 18, opset::reduce_up, opset::reduce_down},
    {"ReduceMean", 18, opset::reduce_up, opset::reduce_down},
    {"ReduceMin", 18, opset::reduce_up, opset::reduce_down},
    {"ReduceProd", 18, opset::reduce_up, opset::reduce_down},
    {"ReduceSumSquare", 18, opset::reduce_up, opset::reduce_down},
    {"Resize", 18, same, opset::resize18_down},
    {"ScatterElements", 18, same, scatter18_down},
    {"ScatterND", 18, same, scatter18_down},
    {"Split", 18, opset::split_up, opset::split_down},
    {"AveragePool", 19, same, dilations_down},
    {"Cast", 19, same, saturate_down},
    {"CastLike", 19, same, saturate_down},
    {"DequantizeLinear", 19, same, same},  // float16 scales
    {"Pad", 19, same, opset::pad19_down},
    {"QuantizeLinear", 19, same, saturate_down},
    {"Resize", 19, same, opset::resize19_down},
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
