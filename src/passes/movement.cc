// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/movement.h"

#include <algorithm>

#include "passes/layout.h"

namespace tenonnx {
namespace {

std::int64_t wrapped(std::int64_t index, std::int64_t size) {
  return index < 0 ? index + size : index;
}

// An axis of the view, or its rank where there is no such axis.
std::size_t axis_of(std::int64_t axis, const StridedView& view) {
  const auto rank = static_cast<std::int64_t>(view.rank());
  axis = wrapped(axis, rank);
  return axis < 0 || axis >= rank ? view.rank() : static_cast<std::size_t>(axis);
}

bool has_input(const onnx::NodeProto& node, int input) {
  return input < node.input_size() && !node.input(input).empty();
}

bool move_slice(const Rewriter& r, const onnx::NodeProto& node, StridedView& view) {
  const auto starts = ints_of(r, node, "starts", 1), ends = ints_of(r, node, "ends", 2);
  if (!starts || !ends || starts->size() != ends->size()) return false;
  std::vector<std::int64_t> axes(starts->size()), steps(starts->size(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  if (has_input(node, 3) || find_attribute(node, "axes") != nullptr) {
    const auto given = ints_of(r, node, "axes", 3);
    if (!given || given->size() != axes.size()) return false;
    axes = *given;
  }
  if (has_input(node, 4)) {
    const auto given = r.integers(node.input(4));
    if (!given || given->size() != axes.size()) return false;
    steps = *given;
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = axis_of(axes[i], view);
    if (axis == view.rank() || steps[i] < 1) return false;
    const std::int64_t size = view.dimension(axis);
    const std::int64_t begin = std::clamp<std::int64_t>(wrapped((*starts)[i], size), 0, size);
    const std::int64_t end = std::clamp<std::int64_t>(wrapped((*ends)[i], size), 0, size);
    if (begin >= end || !view.slice(axis, begin, (end - begin - 1) / steps[i] + 1, steps[i]))
      return false;
  }
  return true;
}

// The sizes of the pieces along `axis`, as many as outputs.
std::optional<std::vector<std::int64_t>> split_sizes(const Rewriter& r, const onnx::NodeProto& node,
                                                     std::int64_t size, std::int64_t pieces) {
  if (has_input(node, 1) || find_attribute(node, "split") != nullptr)
    return ints_of(r, node, "split", 1);
  // Equal pieces; of num_outputs the last one is smaller where they do not go up.
  const std::int64_t each = (size + pieces - 1) / pieces;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(pieces), each);
  sizes.back() = size - each * (pieces - 1);
  return sizes;
}

bool take_piece(StridedView& view, std::size_t axis, const std::vector<std::int64_t>& sizes,
                std::size_t piece) {
  if (piece >= sizes.size() || axis == view.rank()) return false;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < piece; ++i) start += sizes[i];
  return view.slice(axis, start, sizes[piece], 1);
}

bool move_split(const Rewriter& r, const onnx::NodeProto& node, std::string_view output,
                StridedView& view) {
  const std::size_t axis = axis_of(attribute_or(node, "axis", std::int64_t{0}), view);
  if (axis == view.rank()) return false;
  const auto sizes = split_sizes(r, node, view.dimension(axis), node.output_size());
  const auto at = std::find(node.output().begin(), node.output().end(), output);
  if (!sizes || at == node.output().end()) return false;
  return take_piece(view, axis, *sizes, static_cast<std::size_t>(at - node.output().begin()));
}

// SequenceAt(SplitToSequence(x, sizes), i).
bool move_sequence_piece(const Rewriter& r, const onnx::NodeProto& node, StridedView& view) {
  const onnx::NodeProto& split = r.node(r.producer(node.input(0), "SplitToSequence"));
  const auto index = r.scalar(node.input(1));
  const std::size_t axis = axis_of(attribute_or(split, "axis", std::int64_t{0}), view);
  if (!index || axis == view.rank() || !has_input(split, 1)) return false;
  const Tensor* given = r.constant(split.input(1));
  auto sizes = r.integers(split.input(1));
  if (given == nullptr || !sizes || given->shape().size() != 1) return false;
  const std::int64_t piece =
      wrapped(static_cast<std::int64_t>(*index), static_cast<std::int64_t>(sizes->size()));
  return piece >= 0 && take_piece(view, axis, *sizes, static_cast<std::size_t>(piece));
}

bool move_gather(const Rewriter& r, const onnx::NodeProto& node, StridedView& view) {
  const std::size_t axis = axis_of(attribute_or(node, "axis", std::int64_t{0}), view);
  const Tensor* indices = r.constant(node.input(1));
  auto values = r.integers(node.input(1));
  if (axis == view.rank() || indices == nullptr || !values || values->empty() ||
      indices->shape().size() > 1)
    return false;
  const std::int64_t size = view.dimension(axis);
  for (std::int64_t& value : *values) value = wrapped(value, size);
  const std::int64_t step = values->size() > 1 ? (*values)[1] - values->front() : 1;
  for (std::size_t i = 1; i < values->size(); ++i)
    if ((*values)[i] - (*values)[i - 1] != step) return false;
  if (step < 1 ||
      !view.slice(axis, values->front(), static_cast<std::int64_t>(values->size()), step))
    return false;
  return !indices->shape().empty() || view.erase_axis(axis);
}

}  // namespace

std::string moved_from(const Rewriter& r, int index) {
  if (index < 0) return "";
  const onnx::NodeProto& node = r.node(index);
  if (is_op(node, "SequenceAt")) {
    const int split = r.producer(node.input(0), "SplitToSequence");
    return split < 0 ? "" : r.node(split).input(0);
  }
  for (const char* op_type : {"Identity", "Transpose", "Expand", "Slice", "Split"})
    if (is_op(node, op_type)) return node.input(0);
  if (is_op(node, "Gather") && r.constant(node.input(1)) != nullptr) return node.input(0);
  return is_reshape_like(node) ? node.input(0) : "";
}

bool move(const Rewriter& r, int index, std::string_view output, StridedView& view) {
  const onnx::NodeProto& node = r.node(index);
  if (is_op(node, "Identity")) return true;
  if (is_op(node, "Slice")) return move_slice(r, node, view);
  if (is_op(node, "Split")) return move_split(r, node, output, view);
  if (is_op(node, "SequenceAt")) return move_sequence_piece(r, node, view);
  if (is_op(node, "Gather")) return move_gather(r, node, view);
  if (is_op(node, "Transpose")) {
    const auto perm = permutation(r, node);
    return perm && view.transpose(*perm);
  }
  const auto shape = r.static_shape(output);
  if (!shape) return false;
  return is_op(node, "Expand") ? view.broadcast(*shape) : view.reshape(*shape);
}

std::optional<StridedView> MovementChain::view(const Rewriter& r, std::size_t k) const {
  const auto shape = r.static_shape(tensors[k]);
  if (!shape || std::any_of(shape->begin(), shape->end(), [](auto d) { return d < 1; }))
    return std::nullopt;
  StridedView view = StridedView::of(*shape);
  for (std::size_t i = k; i-- > 0;)
    if (!move(r, nodes[i], tensors[i], view)) return std::nullopt;
  return view;
}

MovementChain movement_chain(const Rewriter& r, std::string_view tensor) {
  MovementChain chain;
  chain.tensors.emplace_back(tensor);
  for (;;) {
    const int node = r.producer(chain.tensors.back());
    std::string from = moved_from(r, node);
    if (from.empty()) return chain;
    chain.nodes.push_back(node);
    chain.tensors.push_back(std::move(from));
  }
}

}  // namespace tenonnx
