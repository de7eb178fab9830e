// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fuse_gelu: the chains that compute GELU become the operator Gelu.
//
// before: y = 0.5 x (1 + erf(x / sqrt(2)))                                    after: y = Gelu(x)
//         y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))      Gelu<approximate="tanh">(x)
//
// Conditions: the factors in any order (gelu_pattern.h); each constant, and each coefficient of the
// argument, within 1e-6 (relative) of its exact value; float32; nothing inside is used elsewhere.
// Class algebraic. Source: ONNX Gelu-20.
// Refuses: opset below 20, which has no Gelu; another dtype (the chain of float16 rounds five
// times, the operator once: not the same values); a wrong constant; an inside that is used.
#include <string>

#include "base/status.h"
#include "passes/fusion.h"
#include "passes/gelu_pattern.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {

namespace passes {

Result<PassOutcome> fuse_gelu(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("fuse_gelu", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    std::string reason;
    const auto gelu = match_gelu(r, i, reason);
    if (!gelu && reason.empty()) return;
    // A constant that is wrong in another dtype is wrong because of the dtype.
    const std::string narrow =
        float32_reason(r, r.node(i).input(0), "a chain of a narrower dtype rounds at every step");
    if (!narrow.empty()) reason = narrow;
    if (reason.empty()) reason = opset_reason(r, "Gelu", 20);
    if (!reason.empty()) return r.refuse(i, reason);
    if (!r.begin(gelu->nodes)) return;
    onnx::NodeProto node = make_node("Gelu", {gelu->x}, {r.node(gelu->last).output(0)});
    if (gelu->tanh) set_attribute(node, "approximate", std::string_view("tanh"));
    r.replace(gelu->last, std::move(node));
    r.apply(i, gelu->tanh ? "the tanh form becomes Gelu" : "the erf form becomes Gelu");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
