// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// eliminate_identities: removes nodes that only pass their input on.
//
// before: y = Identity(x); z = Relu(y)      after: z = Relu(x)
//         y = Dropout(x), inference mode
//
// Conditions: a Dropout has neither a training_mode input that may be true nor a mask that is used.
// Class bitwise.
// Refuses: an Identity between an input, an initializer or an output of the graph and another
// output: each of them needs a name of its own.
#include <string>

#include "base/status.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

// `reason` is why a Dropout does not pass its input on.
bool passes_on(const Rewriter& r, const onnx::NodeProto& node, std::string& reason) {
  if (is_op(node, "Identity")) return true;
  // Before opset 7 an attribute, is_test, said whether it was training.
  if (!is_op(node, "Dropout") || r.opset() < 7) return false;
  if (node.output_size() > 1 && r.use_count(node.output(1)) > 0) {
    reason = "its mask is used";
    return false;
  }
  if (node.input_size() > 2 && !node.input(2).empty()) {
    const Tensor* training = r.constant(node.input(2));
    if (training == nullptr || training->size() != 1 || training->data<std::uint8_t>()[0] != 0) {
      reason = "it may be in training mode";
      return false;
    }
  }
  return true;
}

}  // namespace

namespace passes {

Result<PassOutcome> eliminate_identities(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("eliminate_identities", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    std::string reason;
    if (!passes_on(r, node, reason)) {
      if (!reason.empty()) r.refuse(i, reason);
      return;
    }
    if (!r.begin({i})) return;
    if (!r.alias(node.output(0), node.input(0))) {
      r.refuse(i, "joins an output of the graph to a tensor that must keep its own name");
      return;
    }
    r.remove(i);
    r.apply(i, "passes its input on");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
