// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fuse_rms_normalization: the chain that computes it becomes the operator RMSNormalization.
//
// before: y = x / sqrt(mean(x^2) + epsilon) * scale
// after:  y = RMSNormalization<axis, epsilon>(x, scale)
//
// Conditions: the mean over the last axis or several last axes, axes kept; float32; the scale a
// constant with one element for each element of these axes, or missing (ones then); nothing inside
// is used elsewhere. Epsilon is taken over exactly. A Mul by anything else stays behind the
// operator. Forms: normalization_pattern.h. Class algebraic. Source: ONNX RMSNormalization-23, of
// which ONNX Runtime 1.29 has a CPU kernel.
// Refuses: opset below 23, which has no such operator; another dtype; other axes; epsilon behind
// the root; the mean square of another tensor; an inside that is used elsewhere.
#include <string>

#include "base/status.h"
#include "passes/fusion.h"
#include "passes/normalization_pattern.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {

namespace passes {

Result<PassOutcome> fuse_rms_normalization(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("fuse_rms_normalization", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    std::string reason;
    const auto p = match_normalization(r, i, /*centered=*/false, reason);
    if (p) reason = opset_reason(r, "RMSNormalization", 23);
    const auto scale = p && p->scale.empty() ? scale_of_ones(p->dims) : std::nullopt;
    if (p && reason.empty() && p->scale.empty() && !scale)
      reason = "it has no scale, and how many elements a scale of ones must have is not known";
    if (!reason.empty()) return r.refuse(i, reason);
    if (!p || !r.begin(p->nodes)) return;
    const std::string y = r.node(p->last).output(0);
    const std::string gain =
        scale ? r.add_constant(y + "/scale", *scale) : shaped_constant(r, p->scale, p->dims);
    onnx::NodeProto node = make_node("RMSNormalization", {p->x, gain}, {y});
    set_attribute(node, "axis", p->axis);
    set_attribute(node, "epsilon", p->epsilon);
    r.replace(p->last, std::move(node));
    r.apply(i, "the chain becomes RMSNormalization");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
