// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fuse_split: makes Slices that together take a tensor apart one Split.
//
// before: a = x[:, 0:64]; b = x[:, 64:128]        after: a, b = Split(x, axis 1, [64, 64])
//
// Conditions: constant bounds along one axis of known size, step 1, and pieces that follow one
// another from the first element to the last.
// Class bitwise. x may have other uses besides.
// Refuses: Slices of one axis with a gap or an overlap between them, where there are several.
#include <algorithm>
#include <map>
#include <string>

#include "base/status.h"
#include "passes/layout.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

struct Piece {
  int node = -1;
  std::int64_t axis = 0, begin = 0, end = 0;
};

std::optional<Piece> piece_of(const Rewriter& r, int index) {
  const onnx::NodeProto& node = r.node(index);
  const auto shape = r.shape(node.input(0));
  const auto starts = ints_of(r, node, "starts", 1), ends = ints_of(r, node, "ends", 2);
  if (!shape || !starts || !ends || starts->size() != 1 || ends->size() != 1) return std::nullopt;
  const bool has_axes =
      find_attribute(node, "axes") != nullptr || (node.input_size() > 3 && !node.input(3).empty());
  const auto axes = ints_of(r, node, "axes", 3);
  if (has_axes && (!axes || axes->size() != 1)) return std::nullopt;
  if (node.input_size() > 4 && !node.input(4).empty() && r.scalar(node.input(4)) != 1.0)
    return std::nullopt;
  Piece piece;
  piece.node = index;
  piece.axis = has_axes ? axes->front() : 0;
  if (piece.axis < 0) piece.axis += static_cast<std::int64_t>(shape->size());
  const std::int64_t size = (*shape)[static_cast<std::size_t>(piece.axis)];
  if (size <= 0) return std::nullopt;
  const auto bound = [size](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  piece.begin = bound(starts->front());
  piece.end = bound(ends->front());
  if (piece.begin >= piece.end) return std::nullopt;
  return piece;
}

// The pieces of x along an axis that follow one another; empty where they do not fill it.
std::vector<Piece> partition(const Rewriter& r, const std::string& x, std::int64_t axis,
                             std::int64_t size, int& count) {
  std::map<std::int64_t, Piece> by_begin;
  count = 0;
  for (const Use& use : r.index().uses(x)) {
    if (use.input != 0 || !is_op(r.node(use.node), "Slice")) continue;
    const auto piece = piece_of(r, use.node);
    if (!piece || piece->axis != axis) continue;
    ++count;
    by_begin.try_emplace(piece->begin, *piece);
  }
  std::vector<Piece> pieces;
  for (std::int64_t at = 0; at < size; at = pieces.back().end) {
    const auto next = by_begin.find(at);
    if (next == by_begin.end()) return {};
    pieces.push_back(next->second);
  }
  return pieces;
}

}  // namespace

namespace passes {

Result<PassOutcome> fuse_split(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("fuse_split", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    if (!is_op(r.node(i), "Slice")) return;
    const std::string& x = r.node(i).input(0);
    const auto own = piece_of(r, i);
    if (!own) return;
    const std::int64_t size = (*r.shape(x))[static_cast<std::size_t>(own->axis)];
    int count = 0;
    const std::vector<Piece> pieces = partition(r, x, own->axis, size, count);
    if (count < 2) return;
    if (pieces.size() < 2) return r.refuse(i, "the Slices beside it leave a gap or overlap");
    std::vector<int> nodes;
    std::vector<std::int64_t> sizes;
    onnx::NodeProto split = make_node("Split", {x}, {});
    for (const Piece& piece : pieces) {
      nodes.push_back(piece.node);
      sizes.push_back(piece.end - piece.begin);
      split.add_output(r.node(piece.node).output(0));
    }
    if (std::count(nodes.begin(), nodes.end(), i) == 0)
      return r.refuse(i, "other Slices take the tensor apart; it overlaps them");
    if (!r.begin(nodes)) return;
    set_attribute(split, "axis", own->axis);
    if (r.opset() < 13) {
      set_attribute(split, "split", sizes);
    } else {
      const auto pieces_count = static_cast<std::int64_t>(sizes.size());
      split.add_input(r.add_constant(
          x + "_split", Tensor::from<std::int64_t>(DType::kInt64, {pieces_count}, sizes)));
    }
    for (const int node : nodes) r.remove(node);
    r.insert(*std::min_element(nodes.begin(), nodes.end()), std::move(split));
    r.apply(i, fmt::format("{} Slices become one Split", nodes.size()));
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
