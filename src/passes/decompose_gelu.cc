// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// decompose_gelu: Gelu becomes the chain that exporters of opset 17 write, which the toolchains of
// vendors know and fuse themselves.
//
// before: y = Gelu(x)                    after: y = (x * (erf(x / sqrt(2)) + 1)) * 0.5
//         Gelu<approximate="tanh">(x)           y = (x * (tanh(sqrt(2/pi) (x + 0.044715 x^3)) + 1))
//                                                   * 0.5, x^3 as (x * x) * x
//
// Conditions: float32. Class algebraic. fuse_gelu is the way back. Source: ONNX Gelu-20.
// Refuses: another dtype, in which the chain rounds at every step: decompose, then convert.
#include <cmath>
#include <numbers>
#include <string>

#include "base/status.h"
#include "passes/chain_writer.h"
#include "passes/fusion.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {

namespace passes {

Result<PassOutcome> decompose_gelu(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("decompose_gelu", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_op(node, "Gelu")) return;
    const std::string x = node.input(0), y = node.output(0);
    const std::string reason = float32_reason(r, x, "a chain of it rounds at every step");
    if (!reason.empty()) return r.refuse(i, reason);
    if (!r.begin({i})) return;
    ChainWriter chain(r, i);
    std::string inner;
    if (attribute_or(node, "approximate", "none") == "tanh") {
      const std::string cube = chain.add("Mul", {chain.add("Mul", {x, x}), x});
      const std::string sum =
          chain.add("Add", {x, chain.add("Mul", {cube, chain.constant(0.044715)})});
      const double scale = std::sqrt(2 * std::numbers::inv_pi);
      inner = chain.add("Tanh", {chain.add("Mul", {sum, chain.constant(scale)})});
    } else {
      inner = chain.add("Erf", {chain.add("Div", {x, chain.constant(std::numbers::sqrt2)})});
    }
    const std::string sum = chain.add("Add", {inner, chain.constant(1)});
    const std::string product = chain.add("Mul", {x, sum});
    r.replace(i, make_node("Mul", {product, chain.constant(0.5)}, {y}));
    r.apply(i, "Gelu becomes a chain");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
