// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fuse_layer_normalization: the chain that computes it becomes the operator LayerNormalization.
//
// before: m = mean(x)  d = x - m  v = mean(d^2)       after: y = LayerNormalization<axis, epsilon>
//         y = d / sqrt(v + epsilon) * scale + bias               (x, scale, bias)
//
// Conditions: both means over the last axis or several last axes, axes kept; float32; scale and
// bias constants with one element for each element of these axes, or missing (ones then); nothing
// inside is used elsewhere. Epsilon is taken over exactly. A Mul or Add by anything else stays
// behind the operator. Forms: normalization_pattern.h. Class algebraic.
// Source: ONNX LayerNormalization-17.
// Refuses: opset below 17, which has no such operator; another dtype; other axes; epsilon behind
// the root; mean and variance of different tensors; an inside that is used elsewhere.
#include <string>

#include "base/status.h"
#include "passes/fusion.h"
#include "passes/normalization_pattern.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {

namespace passes {

Result<PassOutcome> fuse_layer_normalization(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("fuse_layer_normalization", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    std::string reason;
    const auto p = match_normalization(r, i, /*centered=*/true, reason);
    if (p) reason = opset_reason(r, "LayerNormalization", 17);
    const auto scale = p && p->scale.empty() ? scale_of_ones(p->dims) : std::nullopt;
    if (p && reason.empty() && p->scale.empty() && !scale)
      reason = "it has no scale, and how many elements a scale of ones must have is not known";
    if (!reason.empty()) return r.refuse(i, reason);
    if (!p || !r.begin(p->nodes)) return;
    const std::string y = r.node(p->last).output(0);
    std::vector<std::string> inputs = {
        p->x, scale ? r.add_constant(y + "/scale", *scale) : shaped_constant(r, p->scale, p->dims)};
    if (!p->bias.empty()) inputs.push_back(shaped_constant(r, p->bias, p->dims));
    onnx::NodeProto node = make_node("LayerNormalization", inputs, {y});
    set_attribute(node, "axis", p->axis);
    set_attribute(node, "epsilon", p->epsilon);
    r.replace(p->last, std::move(node));
    r.apply(i, "the chain becomes LayerNormalization");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
