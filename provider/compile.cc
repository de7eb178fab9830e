// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "compile.h"

#include <utility>

#include "adapters/sim.h"
#include "api.h"
#include "base/json.h"
#include "base/status.h"
#include "claim.h"
#include "graph_to_model.h"

namespace tenonnx::simnpu {
namespace {

// A partition has one backend: that of any of its nodes.
Backend backend_of(const Ort::ConstGraph& graph, const Settings& settings) {
  for (const PartitionNode& node : claim(graph, settings).to_group)
    if (node.backend == Backend::kHost) return Backend::kHost;
  return Backend::kDevice;
}

}  // namespace

Result<Compiled> compile(const Ort::ConstGraph& graph, const Ort::ConstNode& fused,
                         const Settings& settings) {
  const auto nodes = graph.GetNodes();
  std::vector<std::string> inputs, outputs;
  for (const auto& value : fused.GetInputs()) inputs.push_back(name_of(value));
  for (const auto& value : fused.GetOutputs()) outputs.push_back(name_of(value));
  if (nodes.size() == 1 && is_own_context(nodes[0])) {
    TENONNX_ASSIGN_OR_RETURN(Compiled compiled,
                             load_context(nodes[0], graph.GetModelPath(), settings));
    compiled.partition = fused.GetName();
    // The order is that of this node, which need not be that of the node it was compiled for.
    compiled.inputs = std::move(inputs);
    compiled.outputs = std::move(outputs);
    return compiled;
  }
  Compiled compiled;
  compiled.partition = fused.GetName();
  compiled.compatibility = compatibility_of(settings.device);
  compiled.backend = backend_of(graph, settings);
  compiled.inputs = std::move(inputs);
  compiled.outputs = std::move(outputs);
  for (const auto& node : nodes) compiled.nodes.push_back({node.GetName(), node.GetOperatorType()});
  auto model = graph_to_model(graph);
  if (!model.ok()) return model.status().at("partition '" + compiled.partition + "'");
  if (compiled.backend == Backend::kDevice) {
    auto simulated = simulated_model(*model, *settings.device.arithmetic);
    if (!simulated.ok()) return simulated.status().at("partition '" + compiled.partition + "'");
    model = std::move(simulated);
  }
  TENONNX_ASSIGN_OR_RETURN(compiled.model, model->serialize());
  return compiled;
}

Status write_report(const std::vector<Compiled>& partitions, const Settings& settings) {
  Json list = Json::array();
  for (const Compiled& compiled : partitions) {
    const bool host = compiled.backend == Backend::kHost;
    Json nodes = Json::array();
    for (const ReportedNode& node : compiled.nodes) {
      // The label that a toolchain was told to print says nothing of where the node is computed.
      const bool labelled = node.op_type == settings.options.relabel;
      nodes.push_back({{"node", node.name},
                       {"op_type", node.op_type},
                       {"backend", host && !labelled ? "host" : "device"}});
    }
    list.push_back({{"partition", compiled.partition}, {"nodes", std::move(nodes)}});
  }
  return write_json_file(settings.options.report, {{"schema_version", 1},
                                                   {"provider", kProviderName},
                                                   {"device", settings.device.name},
                                                   {"partitions", std::move(list)}});
}

}  // namespace tenonnx::simnpu
