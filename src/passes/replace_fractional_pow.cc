// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// replace_fractional_pow: replaces roots and inverses that are written as powers.
//
// before: y = Pow(x, 0.5)       after: y = Sqrt(x)
//         y = Pow(x, -1)               y = Reciprocal(x)
//
// Conditions: one constant exponent whose rank is not above that of x; x is a float.
// Class algebraic: Sqrt and Reciprocal are rounded right, the C library's pow is not always (within
// 1 ulp). They differ for -0 (Pow gives +0, Sqrt -0) and -infinity (Pow gives +infinity, Sqrt NaN).
// Refuses: an exponent of higher rank than x.
#include <string>

#include "base/status.h"
#include "passes/constants.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace passes {

Result<PassOutcome> replace_fractional_pow(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("replace_fractional_pow", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_op(node, "Pow")) return;
    const auto exponent = r.scalar(node.input(1));
    if (!exponent || (*exponent != 0.5 && *exponent != -1)) return;
    const std::string &x = node.input(0), &y = node.output(0);
    const DType dtype = r.dtype(x);
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kFloat16)
      return r.refuse(i, fmt::format("the base is {}", to_string(dtype)));
    const auto shape = r.shape(x);
    if (!shape || !broadcasts_into(r.constant(node.input(1))->shape(), *shape))
      return r.refuse(i, "the exponent may have a higher rank than the base");
    if (!r.begin({i})) return;
    const bool root = *exponent == 0.5;
    r.replace(i, make_node(root ? "Sqrt" : "Reciprocal", {x}, {y}));
    r.apply(i, root ? "x^0.5 becomes Sqrt" : "x^-1 becomes Reciprocal");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
