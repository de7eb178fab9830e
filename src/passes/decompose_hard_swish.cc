// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// decompose_hard_swish: HardSwish becomes its definition.
//
// before: y = HardSwish(x)      after: y = x * HardSigmoid<alpha = 1/6, beta = 0.5>(x)
//
// Conditions: float32. Class algebraic. Source: ONNX HardSwish-14, -22.
// Refuses: another dtype, in which the chain rounds at every step: decompose, then convert.
#include <string>

#include "base/status.h"
#include "passes/fusion.h"
#include "passes/passes.h"

namespace tenonnx {
namespace passes {

Result<PassOutcome> decompose_hard_swish(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("decompose_hard_swish", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_op(node, "HardSwish")) return;
    const std::string &x = node.input(0), &y = node.output(0);
    const std::string reason = float32_reason(r, x, "a chain of it rounds at every step");
    if (!reason.empty()) return r.refuse(i, reason);
    if (!r.begin({i})) return;
    const std::string gate = r.fresh(y + "/HardSigmoid");
    onnx::NodeProto sigmoid = make_node("HardSigmoid", {x}, {gate});
    set_attribute(sigmoid, "alpha", 1.0F / 6);
    set_attribute(sigmoid, "beta", 0.5F);
    r.insert(i, std::move(sigmoid));
    r.replace(i, make_node("Mul", {x, gate}, {y}));
    r.apply(i, "HardSwish becomes x * HardSigmoid(x)");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
