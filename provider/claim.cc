// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "claim.h"

#include <map>
#include <string>
#include <unordered_map>

#include "context.h"
#include "device/supported.h"
#include "graph_to_model.h"

namespace tenonnx::simnpu {
namespace {

OperandFacts operand(const Ort::ConstValueInfo& value) {
  OperandFacts facts;
  facts.name = name_of(value);
  if (facts.name.empty()) return facts;
  TensorInfo info = info_of(value);
  facts.constant = value.IsConstantInitializer();
  facts.dtype = info.dtype;
  facts.has_rank = info.has_rank;
  facts.shape = std::move(info.shape);
  return facts;
}

NodeFacts facts_of(const Ort::ConstNode& node, const std::map<std::string, int>& opsets) {
  NodeFacts facts;
  facts.op_type = node.GetOperatorType();
  facts.domain = node.GetDomain();
  const auto opset = opsets.find(facts.domain);
  facts.opset = opset == opsets.end() ? node.GetSinceVersion() : opset->second;
  facts.has_bodies = !node.GetSubgraphs().empty();
  for (const auto& value : node.GetInputs()) facts.inputs.push_back(operand(value));
  for (const auto& value : node.GetOutputs()) facts.outputs.push_back(operand(value));
  facts.attribute = [node](std::string_view name) -> std::optional<std::string> {
    Ort::ConstOpAttr attribute{nullptr};
    const auto found = node.GetAttributeByName(std::string(name), attribute);
    if (!found.IsOK() || static_cast<const OrtOpAttr*>(attribute) == nullptr) return std::nullopt;
    std::string text;
    std::int64_t number = 0;
    if (attribute.GetType() == ORT_OP_ATTR_STRING && attribute.GetValue(text).IsOK()) return text;
    if (attribute.GetType() == ORT_OP_ATTR_INT && attribute.GetValue(number).IsOK())
      return std::to_string(number);
    return "another type";
  };
  return facts;
}

Backend backend_of(const NodeFacts& node, const Settings& settings) {
  if (settings.options.pinned.contains(node.op_type)) return Backend::kNone;
  if (!node.has_bodies && node.op_type == settings.options.relabel) return Backend::kHost;
  const Support support = find_support(settings.device.supported, node);
  if (support.rule == nullptr) return Backend::kNone;
  return support.rule->on_host ? Backend::kHost : Backend::kDevice;
}

}  // namespace

Claims claim(const Ort::ConstGraph& graph, const Settings& settings) {
  std::map<std::string, int> opsets;
  for (const auto& opset : graph.GetOperatorSets())
    opsets[opset.domain == "ai.onnx" ? "" : opset.domain] = static_cast<int>(opset.version);
  Claims claims;
  claims.nodes = graph.GetNodes();
  std::unordered_map<std::string, int> producers;
  for (std::size_t i = 0; i < claims.nodes.size(); ++i) {
    const Ort::ConstNode& node = claims.nodes[i];
    PartitionNode& to_group = claims.to_group.emplace_back();
    for (const auto& values : {node.GetInputs(), node.GetImplicitInputs()})
      for (const auto& value : values)
        if (const auto it = producers.find(name_of(value)); it != producers.end())
          to_group.predecessors.push_back(it->second);
    for (const auto& value : node.GetOutputs())
      if (const std::string name = name_of(value); !name.empty())
        producers[name] = static_cast<int>(i);
    if (is_own_context(node))
      claims.contexts.push_back(static_cast<int>(i));
    else if (settings.silent.empty())
      to_group.backend = backend_of(facts_of(node, opsets), settings);
  }
  return claims;
}

}  // namespace tenonnx::simnpu
