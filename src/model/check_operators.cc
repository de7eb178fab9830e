// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/check_operators.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <map>
#include <set>
#include <tuple>

#include "base/status.h"
#include "model/graph.h"

namespace tenonnx {
namespace {

using Versions = std::map<std::string, int, std::less<>>;
using FunctionIds = std::set<std::tuple<std::string, std::string, std::string>>;

template <typename Imports>
Versions versions_of(const Imports& imports) {
  Versions versions;
  for (const auto& import : imports)
    versions[std::string(normalized_domain(import.domain()))] = static_cast<int>(import.version());
  return versions;
}

// What the schemas do not say and ONNX Runtime 1.29 answers with abort() instead of an error.
Status check_split(const onnx::NodeProto& node) {
  const std::int64_t outputs = node.output_size();
  if (const auto* count = find_attribute(node, "num_outputs"); count != nullptr && count->has_i())
    if (count->i() != outputs)
      return DataLoss("{} has num_outputs {} and {} outputs", node_label(node), count->i(),
                      outputs);
  if (const auto* sizes = find_attribute(node, "split"); sizes != nullptr)
    if (sizes->ints_size() > 0 && sizes->ints_size() != outputs)
      return DataLoss("{} has {} sizes and {} outputs", node_label(node), sizes->ints_size(),
                      outputs);
  return {};
}

template <typename Nodes>
Status check_nodes(const Nodes& nodes, const Versions& versions, const FunctionIds& functions) {
  for (const onnx::NodeProto& node : nodes) {
    const std::string domain(normalized_domain(node.domain()));
    if (functions.contains({domain, node.op_type(), node.overload()})) continue;
    const auto version = versions.find(domain);
    if (version == versions.end())
      return DataLoss("{} is of the domain '{}', which the model does not import", node_label(node),
                      domain.empty() ? "ai.onnx" : domain);
    // What onnx does not know may be a custom operator, or one that ONNX Runtime keeps in ai.onnx
    // for itself (SimplifiedLayerNormalization): a session will tell.
    const onnx::OpSchema* schema =
        onnx::OpSchemaRegistry::Instance()->GetSchema(node.op_type(), version->second, domain);
    if (schema != nullptr) {
      try {
        schema->Verify(node);
      } catch (const std::exception& error) {
        return DataLoss("{} is not valid: {}", node_label(node), error.what());
      }
    }
    if (domain.empty() && node.op_type() == "Split") TENONNX_RETURN_IF_ERROR(check_split(node));
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g())
        TENONNX_RETURN_IF_ERROR(check_nodes(attribute.g().node(), versions, functions));
      for (const auto& g : attribute.graphs())
        TENONNX_RETURN_IF_ERROR(check_nodes(g.node(), versions, functions));
    }
  }
  return {};
}

}  // namespace

Status check_operators(const onnx::ModelProto& model) {
  FunctionIds functions;
  for (const auto& f : model.functions())
    functions.emplace(normalized_domain(f.domain()), f.name(), f.overload());
  Versions versions = versions_of(model.opset_import());
  if (model.ir_version() < 3) versions.emplace("", 1);
  TENONNX_RETURN_IF_ERROR(check_nodes(model.graph().node(), versions, functions));
  for (const auto& f : model.functions())
    TENONNX_RETURN_IF_ERROR(check_nodes(f.node(), versions_of(f.opset_import()), functions)
                                .at(fmt::format("function '{}.{}'", f.domain(), f.name())));
  return {};
}

}  // namespace tenonnx
