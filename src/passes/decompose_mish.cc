// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// decompose_mish: Mish, which few toolchains know, becomes its definition.
//
// before: y = Mish(x)      after: y = x * tanh(softplus(x))
//
// Conditions: float32. Class algebraic. Source: ONNX Mish-18, -22.
// Refuses: another dtype, in which the chain rounds at every step: decompose, then convert.
#include <string>

#include "base/status.h"
#include "passes/chain_writer.h"
#include "passes/fusion.h"
#include "passes/passes.h"

namespace tenonnx {
namespace passes {

Result<PassOutcome> decompose_mish(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("decompose_mish", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_op(node, "Mish")) return;
    const std::string& x = node.input(0);
    const std::string reason = float32_reason(r, x, "a chain of it rounds at every step");
    if (!reason.empty()) return r.refuse(i, reason);
    if (!r.begin({i})) return;
    ChainWriter chain(r, i);
    const std::string gate = chain.add("Tanh", {chain.add("Softplus", {x})});
    r.replace(i, make_node("Mul", {x, gate}, {node.output(0)}));
    r.apply(i, "Mish becomes x * tanh(softplus(x))");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
