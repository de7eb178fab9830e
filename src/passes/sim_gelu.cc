// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/sim_gelu.h"

#include <onnx/onnx_pb.h>

#include "base/status.h"
#include "passes/gelu_pattern.h"

namespace tenonnx {

Result<SimGelus> find_sim_gelus(Model& model) {
  SimGelus found;
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  bool any = false;
  std::unordered_set<std::string> used;
  for (const onnx::NodeProto& node : graph.node()) {
    any |= node.op_type() == "Erf";
    used.insert(node.input().begin(), node.input().end());
  }
  if (!any) return found;
  const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> outputs = graph.output();
  graph.clear_output();
  for (const onnx::ValueInfoProto& output : outputs)
    if (!used.contains(output.name())) *graph.add_output() = output;
  Rewriter r(model);
  const Status status = r.run([&](int i) {
    std::string reason;
    if (r.node(i).op_type() != "Erf") return;
    const auto gelu = match_gelu(r, i, reason);
    if (!gelu) return;
    found.inputs[r.node(gelu->last).output(0)] = gelu->x;
    for (const int node : gelu->nodes)
      if (node != gelu->last) found.inside.insert(r.node(node).output(0));
  });
  *graph.mutable_output() = outputs;
  TENONNX_RETURN_IF_ERROR(status);
  return found;
}

}  // namespace tenonnx
