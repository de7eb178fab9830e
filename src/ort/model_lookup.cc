// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/model_lookup.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "model/graph.h"
#include "model/shapes.h"

namespace tenonnx {
namespace {

// The nodes of a model that `wanted` accepts, subgraphs included.
template <typename Predicate>
std::vector<const onnx::NodeProto*> find_nodes(const Model& model, Predicate wanted) {
  std::vector<const onnx::NodeProto*> found;
  for_each_graph(model.proto().graph(), [&](const onnx::GraphProto& graph) {
    for (const auto& node : graph.node())
      if (wanted(node)) found.push_back(&node);
  });
  return found;
}

}  // namespace

std::string inputs_of_node(const Model& model, std::string_view name, std::string_view op_type) {
  const auto found = find_nodes(model, [&](const onnx::NodeProto& node) {
    return node.name() == name && node.op_type() == op_type;
  });
  if (found.size() != 1) return "";  // none, or several without a name
  const TensorInfos infos = infer_shapes(model);
  std::string text;
  for (const auto& input : found.front()->input()) {
    if (input.empty()) continue;
    if (!text.empty()) text += "; ";
    const auto it = infos.find(input);
    text += it == infos.end() || it->second.dtype == DType::kUndefined
                ? fmt::format("'{}' of unknown type", input)
                : fmt::format("'{}' {} {}", input, to_string(it->second.dtype),
                              it->second.has_rank ? to_string(it->second.shape) : "of any shape");
  }
  return text;
}

std::string nodes_of_type(const Model& model, std::string_view op_type, std::string_view domain) {
  constexpr std::size_t kListed = 3;
  const auto found = find_nodes(model, [&](const onnx::NodeProto& node) {
    return node.op_type() == op_type &&
           normalized_domain(node.domain()) == normalized_domain(domain);
  });
  std::string text;
  for (std::size_t i = 0; i < found.size() && i < kListed; ++i) {
    const onnx::NodeProto& node = *found[i];
    text += i == 0 ? "" : ", ";
    text += node.name().empty() && node.output_size() > 0
                ? fmt::format("that makes '{}'", node.output(0))
                : fmt::format("'{}'", node.name());
  }
  if (found.size() > kListed) text += fmt::format(" and {} more", found.size() - kListed);
  return text;
}

}  // namespace tenonnx
