// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// eliminate_noop_arithmetic: removes operations with a constant that give back their input.
//
// before: y = x * 1, 1 * x, x / 1, x - 0, x + (-0.0)       after: every use of y reads x
//         y = x + 0, 0 + x of integers
//         y = And(x, true), Or(x, false)
//
// Conditions: every element of the constant is that value, and broadcasting it leaves the shape of
// x as it is.
// Class bitwise: x + 0.0 of floats is not among them, because it makes +0 of -0; that is
// eliminate_zero_additions.
// Refuses: between two tensors that must keep their names (inputs, outputs).
#include <string>

#include "base/status.h"
#include "passes/constants.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

// "is multiplied by 1" where the node gives back input `x` because of input `constant`; else "".
std::string_view why(const Rewriter& r, const onnx::NodeProto& node, int x, int constant) {
  const std::string& c = node.input(constant);
  const Tensor* value = r.constant(c);
  if (value == nullptr) return "";
  const bool left = x == 0;
  const auto filled = [&](double v) { return is_filled_with(r, c, v); };
  std::string_view reason;
  if (is_op(node, "Mul") && filled(1)) reason = "multiplied by 1";
  if (is_op(node, "Div") && left && filled(1)) reason = "divided by 1";
  if (is_op(node, "Sub") && left && filled(0.0)) reason = "minus 0";
  if (is_op(node, "Add")) {
    const bool is_integer = value->dtype() == DType::kInt32 || value->dtype() == DType::kInt64;
    if (is_integer ? filled(0.0) : filled(-0.0)) reason = "plus nothing";
  }
  if ((is_op(node, "And") || is_op(node, "Or")) && value->dtype() == DType::kBool) {
    const bool neutral = is_op(node, "And");
    bool all = value->size() > 0;
    for (std::int64_t k = 0; k < value->size(); ++k)
      all &= (value->data<std::uint8_t>()[k] != 0) == neutral;
    if (all) reason = neutral ? "and true" : "or false";
  }
  if (reason.empty()) return "";
  const auto shape = r.shape(node.input(x));
  return shape && broadcasts_into(value->shape(), *shape) ? reason : "";
}

}  // namespace

namespace passes {

Result<PassOutcome> eliminate_noop_arithmetic(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("eliminate_noop_arithmetic", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    if (node.input_size() != 2) return;
    for (const int x : {0, 1}) {
      const std::string_view reason = why(r, node, x, 1 - x);
      if (reason.empty()) continue;
      if (!r.begin({i})) return;
      if (!r.alias(node.output(0), node.input(x)))
        return r.refuse(i, "joins two tensors that must keep their own names");
      r.remove(i);
      return r.apply(i, reason);
    }
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
