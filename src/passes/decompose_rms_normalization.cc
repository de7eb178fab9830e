// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// decompose_rms_normalization: the operator, which few toolchains know, becomes plain operators.
//
// before: y = RMSNormalization<axis, epsilon>(x, scale)
// after:  y = x / Sqrt(ReduceMean(x * x) + epsilon) * scale, over the axes from `axis` to the last
//
// Conditions: float32; the rank is known where axis is not negative. x * x and not Pow, which some
// toolchains compute by exp and log. Class algebraic. fuse_rms_normalization is the way back.
// Source: ONNX RMSNormalization-23.
// Refuses: another dtype (the operator computes in float32, the chain would not: squares beyond
// 65504 are infinite in float16).
#include <string>

#include "base/status.h"
#include "passes/chain_writer.h"
#include "passes/decompose_normalization.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {

namespace passes {

Result<PassOutcome> decompose_rms_normalization(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("decompose_rms_normalization", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_op(node, "RMSNormalization")) return;
    NormalizationParts parts;
    const std::string reason = read_normalization(r, node, parts);
    if (!reason.empty()) return r.refuse(i, reason);
    if (!r.begin({i})) return;
    ChainWriter chain(r, i);
    const std::string root = chain.root_mean_square(node.input(0), parts.axes, parts.epsilon);
    const std::string quotient = chain.add("Div", {node.input(0), root});
    r.replace(i, make_node("Mul", {quotient, node.input(1)}, {node.output(0)}));
    r.apply(i, "RMSNormalization becomes a chain");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
