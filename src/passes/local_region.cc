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

// What a kernel does along the rows of an image.
struct Window {
  std::int64_t size = 1, dilation = 1, stride = 1, before = 0, after = 0;  // the last two: padding

  std::int64_t rows_of(std::int64_t rows) const {
    const std::int64_t room = rows + before + after - dilation * (size - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  }
  // Whether each of its rows lies on one of the image's at some place.
  bool meets(std::int64_t rows) const {
    for (std::int64_t k = 0; k < size; ++k) {
      bool met = false;
      for (std::int64_t place = 0; place < rows_of(rows); ++place) {
        const std::int64_t row = place * stride - before + k * dilation;
        met |= row >= 0 && row < rows;
      }
      if (!met) return false;
    }
    return true;
  }
};

// Of Conv (its weights' shape says the size where no attribute does) and pools; nullopt where the
// size is not known, or a number is none that a strip could meet.
std::optional<Window> window_of(const onnx::NodeProto& node, const Shape& weights) {
  constexpr std::int64_t kMost = 64;
  const auto first_of = [&](const char* attribute, std::int64_t fallback) {
    const auto values = attribute_ints(node, attribute);
    return values.empty() ? fallback : values.front();
  };
  Window window;
  window.size = first_of("kernel_shape", weights.size() == 4 ? weights[2] : 0);
  window.dilation = first_of("dilations", 1);
  window.stride = first_of("strides", 1);
  const std::string automatic = attribute_or(node, "auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    if (window.stride != 1) return std::nullopt;  // padding depends on the image's rows
    window.before = window.after =
        std::min(window.dilation, kMost) * (std::min(window.size, kMost) - 1) / 2;
  } else if (const auto pads = attribute_ints(node, "pads");
             pads.size() == 4 && automatic == "NOTSET") {
    window.before = pads[0];
    window.after = pads[2];
  }
  const auto within = [](std::int64_t value, std::int64_t least) {
    return value >= least && value <= kMost;
  };
  if (!within(window.size, 1) || !within(window.dilation, 1) || !within(window.stride, 1) ||
      !within(window.before, 0) || !within(window.after, 0))
    return std::nullopt;
  return window;
}

class GraphSide {
 public:
  GraphSide(const GraphIndex& index, const std::vector<int>& nodes)
      : index_(index), nodes_(nodes) {}

  bool has_kernels() const {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [&](int i) { return has_kernel(index_.graph().node(i)); });
  }
  // Whether the strip's rows, fewer behind each stride, meet all rows of all kernels.
  bool rows_meet_kernels() const {
    std::int64_t rows = kImageRows;
    return std::all_of(nodes_.begin(), nodes_.end(), [&](int i) {
      const onnx::NodeProto& node = index_.graph().node(i);
      if (!has_kernel(node) || node.op_type() == "BatchNormalization" || node.op_type() == "Pad")
        return true;
      const Value* weights = node.input_size() > 1 ? constant(node.input(1)) : nullptr;
      const auto window =
          window_of(node, weights == nullptr ? Shape() : shape_of_constant(*weights));
      if (!window || !window->meets(rows)) return false;
      rows = std::min(rows, window->rows_of(rows));
      return true;
    });
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

std::optional<Strip> strip_of(
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
  std::int64_t elements = 0;
  for (const Shape& shape : shapes) elements = std::max(elements, element_count(shape));
  if (!kernels && elements < kTableElements) return std::nullopt;
  if (kernels && (!one_rank || rank != 4 || !was.rows_meet_kernels() || !is.rows_meet_kernels()))
    return std::nullopt;
  std::optional<Strip> best;
  std::int64_t most = 0;
  for (std::size_t axis = 1; axis <= rank; ++axis) {
    if (kernels && axis != 2) continue;
    std::int64_t size = 1;
    for (const Shape& shape : shapes) size = std::max(size, size_along(shape, axis));
    const bool broadcast = std::all_of(shapes.begin(), shapes.end(), [&](const Shape& shape) {
      return (!kernels && size_along(shape, axis) == 1) || size_along(shape, axis) == size;
    });
    const std::size_t common = one_rank ? rank : 0;
    const std::int64_t rows =
        kernels ? kImageRows
                : std::max(kImageRows, kTableElements / std::max<std::int64_t>(1, elements / size));
    if (size <= std::max(most, rows) || !broadcast || !was.is_local(axis, common) ||
        !is.is_local(axis, common))
      continue;
    best = Strip{axis, rows};
    most = size;
  }
  return best;
}

}  // namespace tenonnx
