// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/fuse_normalization.h"

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "passes/fusion.h"
#include "passes/normalization_pattern.h"

namespace tenonnx {

Result<PassOutcome> fuse_normalization(Model& model, std::string_view op_type, int opset,
                                       bool centered) {
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    std::string reason;
    const auto p = match_normalization(r, i, centered, reason);
    if (p) reason = opset_reason(r, op_type, opset);
    const auto scale = p && p->scale.empty() ? scale_of_ones(p->dims) : std::nullopt;
    if (p && reason.empty() && p->scale.empty() && !scale)
      reason = "it has no scale, and how many elements a scale of ones must have is not known";
    if (!reason.empty()) return r.refuse(i, reason);
    if (!p || !r.begin(p->nodes)) return;
    const std::string y = r.node(p->last).output(0);
    std::vector<std::string> inputs = {
        p->x, scale ? r.add_constant(y + "/scale", *scale) : shaped_constant(r, p->scale, p->dims)};
    if (!p->bias.empty()) inputs.push_back(shaped_constant(r, p->bias, p->dims));
    onnx::NodeProto node = make_node(op_type, inputs, {y});
    set_attribute(node, "axis", p->axis);
    set_attribute(node, "epsilon", p->epsilon);
    r.replace(p->last, std::move(node));
    r.apply(i, fmt::format("the chain becomes {}", op_type));
  }));
  return r.finish();
}

}  // namespace tenonnx
