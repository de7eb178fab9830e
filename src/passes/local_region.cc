// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/local_region.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "model/graph.h"

namespace tenonnx {
namespace {

constexpr std::array<std::string_view, 16> kElementWise = {
    "Add", "Sub",  "Mul", "Div",  "Neg", "Abs",      "Relu", "Sigmoid",
    "Erf", "Tanh", "Exp", "Sqrt", "Pow", "Identity", "Clip", "Where"};

bool has_kernel(const onnx::NodeProto& node) {
  return node.op_type() == "Conv" || node.op_type() == "BatchNormalization";
}

// Broadcast to an image, the same in each of its rows.
bool is_same_in_every_row(const onnx::TensorProto& constant) {
  return constant.dims_size() < 2 || constant.dims(constant.dims_size() - 2) == 1;
}

bool is_local(const GraphIndex& index, const std::vector<int>& nodes, bool kernels) {
  const onnx::GraphProto& graph = index.graph();
  return std::all_of(nodes.begin(), nodes.end(), [&](int i) {
    const onnx::NodeProto& node = graph.node(i);
    if (!normalized_domain(node.domain()).empty() || node.input_size() == 0) return false;
    const auto constant = [&](const std::string& name) -> const Value* {
      const Value* value = index.find(name);
      return value != nullptr && value->is_initializer() ? value : nullptr;
    };
    // What it convolves has to be the image.
    if (has_kernel(node)) return kernels && constant(node.input(0)) == nullptr;
    if (std::find(kElementWise.begin(), kElementWise.end(), node.op_type()) == kElementWise.end())
      return false;
    return std::all_of(node.input().begin(), node.input().end(), [&](const std::string& name) {
      const Value* value = constant(name);
      return value == nullptr ||
             (value->initializer != nullptr && is_same_in_every_row(*value->initializer));
    });
  });
}

}  // namespace

bool takes_strips(const GraphIndex& before, const GraphIndex& after, const ChangedRegion& region,
                  const std::function<std::optional<Shape>(const RegionTensor&)>& shape_of) {
  if (region.inputs.empty() || region.before.empty() || region.after.empty()) return false;
  std::optional<Shape> shape;
  for (const RegionTensor& input : region.inputs) {
    const std::optional<Shape> own = shape_of(input);
    if (!own || (shape && *shape != *own)) return false;
    shape = own;
  }
  if (shape->size() < 2 || (*shape)[shape->size() - 2] <= kStripRows) return false;
  const bool image = shape->size() == 4 && region.inputs.size() == 1;
  return is_local(before, region.before, image) && is_local(after, region.after, image);
}

}  // namespace tenonnx
