// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// cancel_transposes: makes one Transpose, or none, of two in a row.
//
// before: y = Transpose(Transpose(x, p), q)       after: y = Transpose(x, r), r[k] = p[q[k]];
//                                                        every use of y reads x where r = 0, 1, ...
//
// The first Transpose stays where others use it; there are never more than before.
// Class bitwise.
// Refuses: two that cancel between tensors that must keep their names (inputs, outputs).
#include <string>

#include "base/status.h"
#include "passes/layout.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace passes {

Result<PassOutcome> cancel_transposes(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("cancel_transposes", options, {}));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    const onnx::NodeProto& node = r.node(i);
    const auto second = permutation(r, node);
    const int before = second ? r.producer(node.input(0), "Transpose") : -1;
    if (before < 0) return;
    const onnx::NodeProto& other = r.node(before);
    const auto first = permutation(r, other);
    if (!first || first->size() != second->size()) return;
    const Permutation perm = composed(*first, *second);
    if (!r.begin({before, i})) return;
    if (!is_identity(perm)) {
      onnx::NodeProto one = make_node("Transpose", {other.input(0)}, {node.output(0)});
      set_attribute(one, "perm", perm);
      r.replace(i, std::move(one));
      return r.apply(i, "two in a row become one");
    }
    if (!r.alias(node.output(0), other.input(0)))
      return r.refuse(i, "cancels the one before, but joins tensors that must keep their names");
    r.remove(i);
    r.apply(i, "undoes the Transpose before it");
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
