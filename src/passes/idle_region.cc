// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/idle_region.h"

#include <onnx/onnx_pb.h>

#include "passes/constants.h"

namespace tenonnx {

bool gave_its_input(const Model& before, const GraphIndex& index, const ChangedRegion& region,
                    const std::optional<Shape>& shape) {
  if (region.before.size() != 1 || !region.after.empty() || region.inputs.size() != 1 ||
      region.outputs.size() != 1 || region.outputs[0].after != region.inputs[0].after || !shape)
    return false;
  const onnx::NodeProto& node = index.graph().node(region.before[0]);
  const bool add = is_op(node, "Add"), sub = is_op(node, "Sub"), mul = is_op(node, "Mul"),
             div = is_op(node, "Div");
  if (!add && !sub && !mul && !div) return false;
  const bool first = node.input(0) == region.inputs[0].before;  // x - 0, not 0 - x
  if (!first && (sub || div || node.input(1) != region.inputs[0].before)) return false;
  const Value* value = index.find(node.input(first ? 1 : 0));
  if (value == nullptr || value->initializer == nullptr || value->is_input) return false;
  const auto constant = before.tensor(*value->initializer);
  if (!constant.ok() || !broadcasts_into(constant->shape(), *shape)) return false;
  if (mul || div) return holds_only(*constant, 1);
  return holds_only(*constant, 0.0) || holds_only(*constant, -0.0);
}

}  // namespace tenonnx
