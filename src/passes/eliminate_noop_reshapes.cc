// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// eliminate_noop_reshapes: removes Reshape, Flatten, Squeeze and Unsqueeze that change nothing.
//
// before: y = Reshape(x, shape of x)               after: every use of y reads x
//         y = Squeeze(Unsqueeze(x, axes), axes)
//
// Conditions, one of:
// - the shapes of x and y are static and equal;
// - a Reshape's target keeps every dimension of a known rank: zeros, and at most one -1;
// - a Squeeze undoes the Unsqueeze before it, or the other way round, over the same axes, whatever
//   the shape of x.
// Class bitwise.
// Refuses: between two tensors that must keep their names (inputs, outputs).
#include <algorithm>
#include <string>

#include "base/status.h"
#include "passes/layout.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

// [0, 0, -1] of an input of rank 3.
bool keeps_all(const Rewriter& r, const onnx::NodeProto& node) {
  if (!is_op(node, "Reshape") || node.input_size() < 2) return false;
  const auto shape = r.shape(node.input(0));
  const auto target = r.integers(node.input(1));
  if (!shape || !target || target->size() != shape->size()) return false;
  if (attribute_or(node, "allowzero", std::int64_t{0}) != 0) return false;
  // With a dimension of 0 elsewhere a -1 could be anything.
  if (std::count(shape->begin(), shape->end(), 0) > 0) return false;
  int open = 0;
  for (std::size_t k = 0; k < target->size(); ++k) {
    if ((*target)[k] == -1) {
      ++open;
    } else if ((*target)[k] != 0 && (*target)[k] != (*shape)[k]) {
      return false;
    }
  }
  // A -1 may stand for a dynamic dimension only where no other dimension is a guess.
  return open <= 1;
}

// The axes from the front, sorted; nullopt where they are not known. `rank` is that of the tensor
// that has the axes.
std::optional<std::vector<std::int64_t>> axes_of(const Rewriter& r, const onnx::NodeProto& node,
                                                 const std::string& has_axes) {
  auto axes = ints_of(r, node, "axes", 1);
  const auto shape = r.shape(has_axes);
  if (!axes || !shape) return std::nullopt;
  for (std::int64_t& axis : *axes)
    if (axis < 0) axis += static_cast<std::int64_t>(shape->size());
  std::sort(axes->begin(), axes->end());
  return axes;
}

// The input of the node before, where this node undoes it; else "".
std::string undone(const Rewriter& r, const onnx::NodeProto& node) {
  const bool squeeze = is_op(node, "Squeeze");
  if (!squeeze && !is_op(node, "Unsqueeze")) return "";
  const int before = r.producer(node.input(0), squeeze ? "Unsqueeze" : "Squeeze");
  if (before < 0) return "";
  const onnx::NodeProto& first = r.node(before);
  // An Unsqueeze's axes are of its output.
  const auto a = axes_of(r, first, squeeze ? first.output(0) : first.input(0));
  const auto b = axes_of(r, node, squeeze ? node.input(0) : node.output(0));
  return a && b && *a == *b ? first.input(0) : "";
}

}  // namespace

namespace passes {

Result<PassOutcome> eliminate_noop_reshapes(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("eliminate_noop_reshapes", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_reshape_like(node)) return;
    std::string source = undone(r, node);
    std::string_view what = "undoes the node before it";
    if (source.empty()) {
      const auto before = r.static_shape(node.input(0));
      const auto after = r.static_shape(node.output(0));
      if (!(before && after && *before == *after) && !keeps_all(r, node)) return;
      source = node.input(0);
      what = "keeps the shape that its input has";
    }
    if (!r.begin({i, r.producer(node.input(0))})) return;
    if (!r.alias(node.output(0), source))
      return r.refuse(i, "joins two tensors that must keep their own names");
    r.remove(i);
    r.apply(i, what);
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
