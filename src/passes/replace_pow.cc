// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// replace_pow: replaces small whole powers by multiplications.
//
// before: y = Pow(x, 1)       after: every use of y reads x
//         y = Pow(x, 2)              y = x * x
//         y = Pow(x, 3)              y = (x * x) * x
//
// Conditions: one constant exponent whose rank is not above that of x; x is float32 or float64.
// Class bitwise: ONNX Runtime 1.29 computes these exponents by the same multiplications.
// Refuses: other dtypes (of float16 the third power is rounded once by Pow, twice by two
// multiplications; integers go through double). Left alone: other exponents (0.5 and -1 are
// replace_fractional_pow).
#include <string>

#include "base/status.h"
#include "passes/constants.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace passes {

Result<PassOutcome> replace_pow(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("replace_pow", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (!is_op(node, "Pow")) return;
    const auto exponent = r.scalar(node.input(1));
    if (!exponent || (*exponent != 1 && *exponent != 2 && *exponent != 3)) return;
    const std::string &x = node.input(0), &y = node.output(0);
    const DType dtype = r.dtype(x);
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64)
      return r.refuse(i, fmt::format("powers of {} are computed in another way", to_string(dtype)));
    const auto shape = r.shape(x);
    if (!shape || !broadcasts_into(r.constant(node.input(1))->shape(), *shape))
      return r.refuse(i, "the exponent may have a higher rank than the base");
    if (!r.begin({i})) return;
    if (*exponent == 1) {
      if (!r.alias(y, x)) return r.refuse(i, "joins two tensors that must keep their own names");
      r.remove(i);
      return r.apply(i, "x^1 is x");
    }
    std::string left = x;
    if (*exponent == 3) {
      left = r.fresh(y + "_square");
      r.insert(i, make_node("Mul", {x, x}, {left}));
    }
    r.replace(i, make_node("Mul", {left, x}, {y}));
    r.apply(i, *exponent == 2 ? "x^2 becomes x * x" : "x^3 becomes (x * x) * x");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
