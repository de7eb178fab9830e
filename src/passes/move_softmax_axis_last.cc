// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// move_softmax_axis_last: Softmax and LogSoftmax over an axis that is not the last one, which many
// devices lack, become one over the last axis.
//
// opset >= 13: y = Softmax<axis=k>(x)     t = Transpose(x), axis k and the last one exchanged
//                                         y = Transpose(Softmax<axis=-1>(t)), the same exchange
// opset < 13:  y = Softmax<axis=k>(x)     t = Reshape(x, [d0, ..., d(k-1), -1])
//                                         y = Reshape(Softmax<axis=k>(t), shape of x)
//
// Before opset 13 the operator normalises over all axes from k on together, and its default axis
// is 1, not -1. Where the axes behind k hold one element each, Reshape serves at any opset.
// Conditions: the rank is known; before opset 13 the dimensions from k on. Class bitwise: each row
// is summed in the same order. Source: ONNX Softmax-1, -11, -13.
// Refuses: an unknown rank; before opset 13 unknown dimensions behind the axis.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/status.h"
#include "passes/constants.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

using Dims = std::vector<std::int64_t>;

// The operator as it is, over the last axis of `x`, making `y`.
onnx::NodeProto softmax_last(const onnx::NodeProto& node, const std::string& x,
                             const std::string& y, std::int64_t axis) {
  onnx::NodeProto last = node;
  last.set_input(0, x);
  last.set_output(0, y);
  set_attribute(last, "axis", axis);
  return last;
}

}  // namespace

namespace passes {

Result<PassOutcome> move_softmax_axis_last(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("move_softmax_axis_last", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_op(node, "Softmax") && !is_op(node, "LogSoftmax")) return;
    const bool flattens = r.opset() < 13;
    std::int64_t axis = attribute_or(node, "axis", flattens ? std::int64_t{1} : std::int64_t{-1});
    if (axis == -1) return;
    const auto shape = r.shape(node.input(0));
    if (!shape) return r.refuse(i, "the rank of '" + node.input(0) + "' is not known");
    const auto rank = static_cast<std::int64_t>(shape->size());
    if (axis < 0) axis += rank;
    if (axis >= rank - 1) return;
    const std::string x = node.input(0), y = node.output(0);
    const Dims behind(shape->begin() + axis, shape->end());
    const bool ones = std::all_of(behind.begin() + 1, behind.end(), [](auto d) { return d == 1; });
    if (std::count(behind.begin(), behind.end(), 0) > 0)
      return r.refuse(i, "it is empty: an axis has no element");
    if (flattens || ones) {
      if (std::count(behind.begin(), behind.end(), -1) > (flattens ? 0 : 1))
        return r.refuse(i, "before opset 13 it normalises over all axes from " +
                               std::to_string(axis) + " on, whose sizes are not known");
      if (!r.begin({i})) return;
      Dims flat(static_cast<std::size_t>(axis), 0), back = flat;  // 0: as it is
      flat.push_back(-1);
      back.insert(back.end(), behind.begin(), behind.end());
      const std::string rows = r.fresh(y + "/rows"), out = r.fresh(y + "/softmax");
      const std::string flat_shape = r.add_constant(y + "/flat", int64_vector(flat));
      const std::string back_shape = r.add_constant(y + "/shape", int64_vector(back));
      r.insert(i, make_node("Reshape", {x, flat_shape}, {rows}));
      r.insert(i, softmax_last(node, rows, out, axis));
      r.remove(i);
      r.insert(i, make_node("Reshape", {out, back_shape}, {y}));
      return r.apply(i, "softmax over the last axis, between two Reshape");
    }
    if (!r.begin({i})) return;
    Dims order(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[static_cast<std::size_t>(axis)], order.back());
    const auto transpose = [&](const std::string& from, const std::string& to) {
      onnx::NodeProto transposed = make_node("Transpose", {from}, {to});
      set_attribute(transposed, "perm", order);
      r.insert(i, std::move(transposed));
    };
    const std::string rows = r.fresh(y + "/rows"), out = r.fresh(y + "/softmax");
    transpose(x, rows);
    r.insert(i, softmax_last(node, rows, out, -1));
    r.remove(i);
    transpose(out, y);
    r.apply(i, "softmax over the last axis, between two Transpose");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
