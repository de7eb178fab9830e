// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// eliminate_zero_additions: removes the addition of 0.
//
// before: y = x + 0.0, 0.0 + x, x - (-0.0)       after: every use of y reads x
//
// Conditions: every element of the constant is 0, and broadcasting it leaves the shape of x as it
// is.
// Class algebraic: -0 + 0 is +0, so that the sign of a zero may differ, which shows only to 1/x,
// Sign-like bit operations and atan2.
// Refuses: between two tensors that must keep their names (inputs, outputs).
#include <string>

#include "base/status.h"
#include "passes/constants.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace passes {

Result<PassOutcome> eliminate_zero_additions(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("eliminate_zero_additions", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    const bool add = is_op(node, "Add");
    if (!add && !is_op(node, "Sub")) return;
    for (const int x : {0, 1}) {
      if (!add && x == 1) return;  // 0 - x
      const std::string& zero = node.input(1 - x);
      if (!is_filled_with(r, zero, add ? 0.0 : -0.0)) continue;
      const auto shape = r.shape(node.input(x));
      if (!shape || !broadcasts_into(r.constant(zero)->shape(), *shape)) continue;
      if (!r.begin({i})) return;
      if (!r.alias(node.output(0), node.input(x)))
        return r.refuse(i, "joins two tensors that must keep their own names");
      r.remove(i);
      return r.apply(i, "plus 0");
    }
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
