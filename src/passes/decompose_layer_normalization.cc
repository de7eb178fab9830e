// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// decompose_layer_normalization: the operator becomes the chain of plain operators.
//
// before: y = LayerNormalization<axis, epsilon>(x, scale, bias)
// after:  m = ReduceMean(x)  d = x - m  v = ReduceMean(d * d)
//         y = d / Sqrt(v + epsilon) * scale + bias, over the axes from `axis` to the last
//
// Conditions: float32; the rank is known where axis is not negative. d * d and not Pow, which some
// toolchains compute by exp and log. Class algebraic. fuse_layer_normalization is the way back.
// Source: ONNX LayerNormalization-17.
// Refuses: another dtype (the operator computes in float32, the chain would not: squares beyond
// 65504 are infinite in float16); the outputs Mean and InvStdDev where they are used.
#include <fmt/format.h>

#include <string>

#include "base/status.h"
#include "passes/chain_writer.h"
#include "passes/decompose_normalization.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {

namespace passes {

Result<PassOutcome> decompose_layer_normalization(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("decompose_layer_normalization", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_op(node, "LayerNormalization")) return;
    NormalizationParts parts;
    std::string reason = read_normalization(r, node, parts);
    for (int k = 1; k < node.output_size() && reason.empty(); ++k)
      if (r.use_count(node.output(k)) > 0)
        reason =
            fmt::format("its output '{}' is used, which the chain does not make", node.output(k));
    if (!reason.empty()) return r.refuse(i, reason);
    if (!r.begin({i})) return;
    ChainWriter chain(r, i);
    const std::string& x = node.input(0);
    const std::string d = chain.add("Sub", {x, chain.mean(x, parts.axes)});
    const std::string root = chain.root_mean_square(d, parts.axes, parts.epsilon);
    const bool has_bias = node.input_size() > 2 && !node.input(2).empty();
    const std::string quotient = chain.add("Div", {d, root});
    if (has_bias) {
      const std::string scaled = chain.add("Mul", {quotient, node.input(1)});
      r.replace(i, make_node("Add", {scaled, node.input(2)}, {node.output(0)}));
    } else {
      r.replace(i, make_node("Mul", {quotient, node.input(1)}, {node.output(0)}));
    }
    r.apply(i, "LayerNormalization becomes a chain");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
