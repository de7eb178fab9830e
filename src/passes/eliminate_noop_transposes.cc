// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// eliminate_noop_transposes: removes a Transpose that moves nothing.
//
// before: y = Transpose(x, perm = [0,1,2])            after: every use of y reads x
//         x: [1,20,256]
//         y = Transpose(x, perm = [1,0,2])            after: y = Reshape(x, [20,1,256]),
//         next to another Reshape                            which merge_reshapes takes
//
// Conditions of the second: only dimensions of size 1 change places, at most one dimension is
// unknown, none is 0, and the node before or every node after is a Reshape, Flatten, Squeeze or
// Unsqueeze: alone a Reshape is no better than the Transpose.
// Class bitwise.
// Refuses: an identity between two tensors that must keep their names (inputs, outputs).
#include <algorithm>
#include <string>

#include "base/status.h"
#include "passes/layout.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

bool keeps_order(const Permutation& perm, const Shape& input) {
  std::int64_t last = -1;
  for (const std::int64_t axis : perm) {
    if (input[static_cast<std::size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

bool beside_a_reshape(const Rewriter& r, const onnx::NodeProto& node) {
  const int before = r.producer(node.input(0));
  if (before >= 0 && is_reshape_like(r.node(before)) && r.use_count(node.input(0)) == 1)
    return true;
  if (r.is_graph_output(node.output(0))) return false;
  const auto& uses = r.index().uses(node.output(0));
  return !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    return use.input == 0 && is_reshape_like(r.node(use.node));
  });
}

}  // namespace

namespace passes {

Result<PassOutcome> eliminate_noop_transposes(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("eliminate_noop_transposes", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    const auto perm = permutation(r, node);
    if (!perm) return;
    if (is_identity(*perm)) {
      if (!r.begin({i})) return;
      if (!r.alias(node.output(0), node.input(0)))
        return r.refuse(i, "joins two tensors that must keep their own names");
      r.remove(i);
      return r.apply(i, "its permutation is the identity");
    }
    const auto shape = r.shape(node.input(0));
    if (!shape || shape->size() != perm->size() || !keeps_order(*perm, *shape)) return;
    const auto target = reshape_target(r.shape(node.output(0)));
    if (!target || !beside_a_reshape(r, node)) return;
    if (!r.begin({i})) return;
    const std::string& y = node.output(0);
    r.replace(i, make_node("Reshape", {node.input(0), r.add_constant(y + "_shape", *target)}, {y}));
    r.apply(i, "moves dimensions of size 1 only: a Reshape");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
