// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fuse_silu: x times its own Sigmoid becomes the operator Swish.
//
// before: y = x * sigmoid(x)             after: y = Swish(x)
//         y = x * sigmoid(a * x)                y = Swish<alpha=a>(x)
//
// Conditions: opset 24; float32; a is a constant of one element; Sigmoid and the product a * x are
// used here alone. Class algebraic. Source: ONNX Swish-24.
// Refuses: opset below 24, which has no Swish; opset above 24, at which ONNX Runtime 1.29 does not
// run it (it has no kernel of its own and takes the operator's definition at opset 24 alone);
// another dtype; an inside that is used elsewhere.
#include <fmt/format.h>

#include <string>

#include "base/status.h"
#include "passes/fusion.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {
namespace {

constexpr int kSwish = 24;

struct Silu {
  std::string x;
  double alpha = 1;
  std::vector<int> nodes;
};

// y = x * Sigmoid(x), node `i` being the Mul.
std::optional<Silu> match(const Rewriter& r, int i) {
  const onnx::NodeProto& node = r.node(i);
  if (!is_op(node, "Mul")) return std::nullopt;
  for (const int side : {0, 1}) {
    const int sigmoid = r.producer(node.input(side), "Sigmoid");
    if (sigmoid < 0) continue;
    Silu silu;
    silu.nodes = {i, sigmoid};
    const std::string_view x = uncast(r, node.input(1 - side), silu.nodes);
    const std::string_view inner = uncast(r, r.node(sigmoid).input(0), silu.nodes);
    silu.x = x;
    if (inner == x) return silu;
    const int scaled = r.producer(inner, "Mul");
    if (scaled < 0) continue;
    silu.nodes.push_back(scaled);
    for (const int operand : {0, 1}) {
      const auto alpha = scalar_beside(r, r.node(scaled).input(1 - operand), x);
      if (!alpha || uncast(r, r.node(scaled).input(operand), silu.nodes) != x) continue;
      silu.alpha = *alpha;
      return silu;
    }
  }
  return std::nullopt;
}

}  // namespace

namespace passes {

Result<PassOutcome> fuse_silu(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("fuse_silu", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const auto silu = match(r, i);
    if (!silu) return;
    std::string reason = used_outside(r, silu->nodes, i);
    if (reason.empty())
      reason = float32_reason(r, silu->x, "a chain of a narrower dtype rounds at every step");
    if (reason.empty()) reason = opset_reason(r, "Swish", kSwish);
    if (reason.empty() && r.opset() > kSwish)
      reason = fmt::format("ONNX Runtime 1.29 runs Swish at opset {} alone, the model imports {}",
                           kSwish, r.opset());
    if (!reason.empty()) return r.refuse(i, reason);
    if (!r.begin(silu->nodes)) return;
    onnx::NodeProto node = make_node("Swish", {silu->x}, {r.node(i).output(0)});
    if (silu->alpha != 1) set_attribute(node, "alpha", static_cast<float>(silu->alpha));
    r.replace(i, std::move(node));
    r.apply(i, "x * sigmoid(x) becomes Swish");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
