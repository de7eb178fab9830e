// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "compile.h"

#include <algorithm>
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

std::vector<std::string> names_of(const std::vector<Ort::ConstValueInfo>& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(name_of(value));
  return names;
}

Result<std::vector<std::size_t>> positions_in(const std::vector<std::string>& list,
                                              const std::vector<std::string>& names) {
  std::vector<std::size_t> positions;
  for (const std::string& name : names) {
    const auto it = std::find(list.begin(), list.end(), name);
    if (it == list.end()) return Internal("the node of a partition has no tensor '{}'", name);
    positions.push_back(static_cast<std::size_t>(it - list.begin()));
  }
  return positions;
}

}  // namespace

Result<Compiled> compile(const Ort::ConstGraph& graph, const Ort::ConstNode& fused,
                         const Settings& settings) {
  const auto nodes = graph.GetNodes();
  const auto inputs = names_of(fused.GetInputs()), outputs = names_of(fused.GetOutputs());
  if (nodes.size() == 1 && is_own_context(nodes[0])) {
    TENONNX_ASSIGN_OR_RETURN(Compiled compiled,
                             load_context(nodes[0], graph.GetModelPath(), settings));
    compiled.partition = fused.GetName();
    const auto read = names_of(nodes[0].GetInputs()), made = names_of(nodes[0].GetOutputs());
    if (read.size() != compiled.inputs.size() || made.size() != compiled.outputs.size())
      return DataLoss("EPContext node '{}' has {} inputs and {} outputs, its binary {} and {}",
                      nodes[0].GetName(), read.size(), made.size(), compiled.inputs.size(),
                      compiled.outputs.size());
    TENONNX_ASSIGN_OR_RETURN(compiled.input_at, positions_in(inputs, read));
    TENONNX_ASSIGN_OR_RETURN(compiled.output_at, positions_in(outputs, made));
    return compiled;
  }
  Compiled compiled;
  compiled.partition = fused.GetName();
  compiled.compatibility = compatibility_of(settings.device);
  compiled.backend = backend_of(graph, settings);
  compiled.inputs = inputs;
  compiled.outputs = outputs;
  TENONNX_ASSIGN_OR_RETURN(compiled.input_at, positions_in(inputs, inputs));
  TENONNX_ASSIGN_OR_RETURN(compiled.output_at, positions_in(outputs, outputs));
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
