// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Passes that are wrong on purpose: in the values, in the graph, in a shape, in where it samples.
#include <onnx/onnx_pb.h>

#include "base/status.h"
#include "model/graph.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace tenonnx::passes {
namespace {

// Changes the first Sigmoid.
template <typename Change>
PassOutcome change_sigmoid(Model& model, Change change) {
  PassOutcome outcome;
  for (onnx::NodeProto& node : *model.mutable_proto().mutable_graph()->mutable_node()) {
    if (node.op_type() != "Sigmoid") continue;
    outcome.sites.push_back({node_label(node), "goes wrong"});
    outcome.applied = 1;
    change(node);
    break;
  }
  return outcome;
}

}  // namespace

Result<PassOutcome> wrong_sigmoid(Model& model, const PassOptions& /*options*/) {
  return change_sigmoid(model, [](onnx::NodeProto& node) { node.set_op_type("HardSigmoid"); });
}

Result<PassOutcome> wrong_graph(Model& model, const PassOptions& /*options*/) {
  return change_sigmoid(model, [](onnx::NodeProto& node) { node.set_input(0, "nothing"); });
}

Result<PassOutcome> wrong_shape(Model& model, const PassOptions& /*options*/) {
  return change_sigmoid(model, [](onnx::NodeProto& node) { node.set_op_type("Transpose"); });
}

// On the middle of an image it changes nothing.
Result<PassOutcome> wrong_corners(Model& model, const PassOptions& /*options*/) {
  PassOutcome outcome;
  for (onnx::NodeProto& node : *model.mutable_proto().mutable_graph()->mutable_node()) {
    if (node.op_type() != "GridSample") continue;
    outcome.sites.push_back({node_label(node), "goes wrong"});
    outcome.applied = 1;
    set_attribute(node, "align_corners", std::int64_t{1});
    break;
  }
  return outcome;
}

}  // namespace tenonnx::passes
