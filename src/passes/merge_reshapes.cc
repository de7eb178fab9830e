// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// merge_reshapes: makes one Reshape of several nodes that only change the shape.
//
// before: a = Unsqueeze(x, axes); y = Reshape(a, s)      after: y = Reshape(x, shape of y)
//
// Of Reshape, Flatten, Squeeze and Unsqueeze any may come first or second.
// Conditions: the shape of y is known up to one dimension and has no 0; every use of a is such a
// node, so that none is left to keep the first one alive.
// Class bitwise.
// Refuses: a y of two unknown dimensions, or with a dimension of 0.
#include <string>

#include "base/status.h"
#include "passes/layout.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

// Whether all uses of the tensor can be pointed past the node that makes it.
bool only_reshaped(const Rewriter& r, const std::string& name) {
  if (r.is_graph_output(name)) return false;
  for (const Use& use : r.index().uses(name)) {
    if (use.input != 0 || !is_reshape_like(r.node(use.node))) return false;
    if (!reshape_target(r.shape(r.node(use.node).output(0)))) return false;
  }
  return true;
}

}  // namespace

namespace passes {

Result<PassOutcome> merge_reshapes(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("merge_reshapes", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_reshape_like(node)) return;
    const int first = r.producer(node.input(0));
    if (first < 0 || !is_reshape_like(r.node(first))) return;
    const auto target = reshape_target(r.shape(node.output(0)));
    if (!target) return r.refuse(i, "its shape is known too little, or has a dimension of 0");
    if (!only_reshaped(r, node.input(0))) return;
    if (!r.begin({first, i})) return;
    const std::string& y = node.output(0);
    r.replace(i, make_node("Reshape",
                           {r.node(first).input(0), r.add_constant(y + "_shape", *target)}, {y}));
    r.apply(i, fmt::format("reshapes what {} reshaped before", r.node(first).op_type()));
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
