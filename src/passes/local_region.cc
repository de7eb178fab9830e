// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/local_region.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "model/graph.h"

namespace tenonnx {
namespace {

constexpr std::array<std::string_view, 16> kElementWise = {
    "Add", "Sub",  "Mul", "Div",  "Neg", "Abs",      "Relu", "Sigmoid",
    "Erf", "Tanh", "Exp", "Sqrt", "Pow", "Identity", "Clip", "Where"};

bool has_kernel(const onnx::NodeProto& node) {
  return node.op_type() == "Conv" || node.op_type() == "BatchNormalization" ||
         node.op_type() == "Pad" || node.op_type() == "MaxPool" || node.op_type() == "AveragePool";
}

Shape shape_of_constant(const Value& value) {
  if (value.initializer == nullptr) return {};
  return {value.initializer->dims().begin(), value.initializer->dims().end()};
}

class GraphSide {
 public:
  GraphSide(const GraphIndex& index, const std::vector<int>& nodes)
      : index_(index), nodes_(nodes) {}

  bool has_kernels() const {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [&](int i) { return has_kernel(index_.graph().node(i)); });
  }
  // Whether nothing tells one place along the axis from another but the inputs. `rank`: of all
  // inputs, 0 where theirs differ.
  bool is_local(std::size_t axis, std::size_t rank) const {
    return std::all_of(nodes_.begin(), nodes_.end(), [&](int i) {
      const onnx::NodeProto& node = index_.graph().node(i);
      if (!normalized_domain(node.domain()).empty() || node.input_size() == 0) return false;
      // What it convolves has to be the image.
      if (has_kernel(node)) return constant(node.input(0)) == nullptr;
      if (node.op_type() == "Concat" && rank > 0) {
        const std::int64_t along = attribute_or(node, "axis", std::int64_t{0});
        const auto dims = static_cast<std::int64_t>(rank);
        if ((along < 0 ? -along : dims - along) == static_cast<std::int64_t>(axis)) return false;
      } else if (std::find(kElementWise.begin(), kElementWise.end(), node.op_type()) ==
                 kElementWise.end()) {
        return false;
      }
      return std::all_of(node.input().begin(), node.input().end(), [&](const std::string& name) {
        const Value* value = constant(name);
        return value == nullptr ||
               (value->initializer != nullptr && size_along(shape_of_constant(*value), axis) == 1);
      });
    });
  }

 private:
  const Value* constant(const std::string& name) const {
    const Value* value = index_.find(name);
    return value != nullptr && value->is_initializer() ? value : nullptr;
  }
  const GraphIndex& index_;
  const std::vector<int>& nodes_;
};

}  // namespace

std::int64_t size_along(const Shape& shape, std::size_t axis_from_last) {
  return axis_from_last > shape.size() ? 1 : shape[shape.size() - axis_from_last];
}

std::optional<std::size_t> strip_axis(
    const GraphIndex& before, const GraphIndex& after, const ChangedRegion& region,
    const std::function<std::optional<Shape>(const RegionTensor&)>& shape_of) {
  if (region.inputs.empty() || region.before.empty() || region.after.empty()) return std::nullopt;
  std::vector<Shape> shapes;
  std::size_t rank = 0;
  for (const RegionTensor& input : region.inputs) {
    std::optional<Shape> shape = shape_of(input);
    if (!shape) return std::nullopt;
    rank = std::max(rank, shape->size());
    shapes.push_back(std::move(*shape));
  }
  const GraphSide was(before, region.before), is(after, region.after);
  const bool kernels = was.has_kernels() || is.has_kernels();
  const bool one_rank = std::all_of(shapes.begin(), shapes.end(),
                                    [&](const Shape& shape) { return shape.size() == rank; });
  if (kernels && (!one_rank || rank != 4)) return std::nullopt;
  std::optional<std::size_t> best;
  std::int64_t most = kStripRows;
  for (std::size_t axis = 1; axis <= rank; ++axis) {
    if (kernels && axis != 2) continue;
    std::int64_t size = 1;
    for (const Shape& shape : shapes) size = std::max(size, size_along(shape, axis));
    const bool broadcast = std::all_of(shapes.begin(), shapes.end(), [&](const Shape& shape) {
      return (!kernels && size_along(shape, axis) == 1) || size_along(shape, axis) == size;
    });
    const std::size_t common = one_rank ? rank : 0;
    if (size <= most || !broadcast || !was.is_local(axis, common) || !is.is_local(axis, common))
      continue;
    best = axis;
    most = size;
  }
  return best;
}

}  // namespace tenonnx
