// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// decompose_silu: Swish, which few toolchains know, becomes Sigmoid and Mul.
//
// before: y = Swish<alpha=a>(x)      after: y = x * sigmoid(a * x); without the product where a = 1
//
// Conditions: float32. Class algebraic. fuse_silu is the way back. Source: ONNX Swish-24.
// Refuses: another dtype, in which the chain rounds at every step: decompose, then convert.
#include <string>

#include "base/status.h"
#include "passes/chain_writer.h"
#include "passes/fusion.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {

namespace passes {

Result<PassOutcome> decompose_silu(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("decompose_silu", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_op(node, "Swish")) return;
    const std::string x = node.input(0), y = node.output(0);
    const std::string reason = float32_reason(r, x, "a chain of it rounds at every step");
    if (!reason.empty()) return r.refuse(i, reason);
    if (!r.begin({i})) return;
    const float alpha = attribute_or(node, "alpha", 1.0F);
    ChainWriter chain(r, i);
    const std::string inner = alpha == 1.0F ? x : chain.add("Mul", {x, chain.constant(alpha)});
    r.replace(i, make_node("Mul", {x, chain.add("Sigmoid", {inner})}, {y}));
    r.apply(i, "Swish becomes x * sigmoid(x)");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
