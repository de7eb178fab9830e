// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// eliminate_noop_copies: removes operators that could select, repeat or resize, but here hand on
// every element as it is.
//
// before: y = Slice(x) of everything, step 1       after: every use of y reads x
//         y = Pad(x) by nothing
//         y = Concat(x), Split(x), Sum(x), Mean(x), Max(x), Min(x): one tensor alone
//         y = Tile(x) once, Expand(x) to its own shape
//         y = Gather(x, [0, 1, ..., n-1]) along an axis of n
//         y = Resize(x) to its own size
//
// Conditions: starts, steps, pads and indices are constant; a Slice of a dynamic dimension ends at
// the largest integer. A Resize has static shapes, and scales that are all 1 where it has scales;
// ONNX Runtime copies then whatever the mode (but tf_crop_and_resize, which reads a region).
// Class bitwise.
// Refuses: between two tensors that must keep their names (inputs, outputs).
#include <algorithm>
#include <limits>
#include <string>

#include "base/status.h"
#include "passes/layout.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

using Ints = std::vector<std::int64_t>;

bool all_are(const Ints& values, std::int64_t value) {
  return std::all_of(values.begin(), values.end(), [value](auto v) { return v == value; });
}

bool same_static_shape(const Rewriter& r, const onnx::NodeProto& node) {
  const auto before = r.static_shape(node.input(0));
  const auto after = r.static_shape(node.output(0));
  return before && after && *before == *after;
}

bool has_input(const onnx::NodeProto& node, int input) {
  return node.input_size() > input && !node.input(input).empty();
}

bool slices_everything(const Rewriter& r, const onnx::NodeProto& node) {
  if (has_input(node, 4)) {
    const auto steps = r.integers(node.input(4));
    if (!steps || !all_are(*steps, 1)) return false;
  }
  if (same_static_shape(r, node)) return true;
  const auto starts = ints_of(r, node, "starts", 1);
  const auto ends = ints_of(r, node, "ends", 2);
  // Exporters write "to the end" as the largest int64 or int32.
  return starts && ends && all_are(*starts, 0) &&
         std::all_of(ends->begin(), ends->end(),
                     [](auto e) { return e >= std::numeric_limits<std::int32_t>::max(); });
}

bool gathers_everything(const Rewriter& r, const onnx::NodeProto& node) {
  const auto shape = r.shape(node.input(0));
  const Tensor* indices = r.constant(node.input(1));
  const auto values = r.integers(node.input(1));
  if (!shape || !values || indices->shape().size() != 1) return false;
  std::int64_t axis = attribute_or(node, "axis", std::int64_t{0});
  if (axis < 0) axis += static_cast<std::int64_t>(shape->size());
  const std::int64_t n = (*shape)[static_cast<std::size_t>(axis)];
  if (n != static_cast<std::int64_t>(values->size())) return false;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t at = (*values)[static_cast<std::size_t>(k)];
    if ((at < 0 ? at + n : at) != k) return false;
  }
  return true;
}

bool resizes_to_itself(const Rewriter& r, const onnx::NodeProto& node) {
  if (!same_static_shape(r, node)) return false;
  if (attribute_or(node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
    return false;
  if (attribute_or(node, "keep_aspect_ratio_policy", "stretch") != "stretch") return false;
  const int scales = r.opset() < 11 ? 1 : 2;
  if (!has_input(node, scales)) return true;  // sizes: those that are there
  const Tensor* t = r.constant(node.input(scales));
  if (t == nullptr || t->dtype() != DType::kFloat32) return false;
  if (t->size() == 0) return true;
  return std::all_of(t->data<float>(), t->data<float>() + t->size(),
                     [](float s) { return s == 1.0F; });
}

bool copies(const Rewriter& r, const onnx::NodeProto& node) {
  const auto is = [&](std::string_view op_type) { return is_op(node, op_type); };
  if (node.input_size() == 1 && (is("Concat") || is("Sum") || is("Mean") || is("Max") || is("Min")))
    return true;
  if (is("Split")) return node.output_size() == 1;
  if (is("Slice")) return slices_everything(r, node);
  if (is("Gather")) return gathers_everything(r, node);
  if (is("Resize")) return resizes_to_itself(r, node);
  if (is("Expand")) return same_static_shape(r, node);
  if (is("Pad")) {
    const auto pads = ints_of(r, node, "pads", 1);
    return pads && all_are(*pads, 0);
  }
  if (is("Tile")) {
    const auto repeats = r.integers(node.input(1));
    return same_static_shape(r, node) || (repeats && all_are(*repeats, 1));
  }
  return false;
}

}  // namespace

namespace passes {

Result<PassOutcome> eliminate_noop_copies(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("eliminate_noop_copies", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!copies(r, node) || !r.begin({i})) return;
    if (!r.alias(node.output(0), node.input(0)))
      return r.refuse(i, "joins two tensors that must keep their own names");
    r.remove(i);
    r.apply(i, fmt::format("this {} hands on every element as it is", node.op_type()));
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
