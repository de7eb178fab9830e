// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/status.h"
#include "model/graph.h"

namespace tenonnx {
namespace {

template <typename Nodes>
void rename_in_nodes(Nodes* nodes, std::string_view from, const std::string& to);

bool defines(const onnx::GraphProto& graph, std::string_view name) {
  const auto named = [&](const auto& item) { return item.name() == name; };
  return std::any_of(graph.input().begin(), graph.input().end(), named) ||
         std::any_of(graph.initializer().begin(), graph.initializer().end(), named) ||
         std::any_of(graph.sparse_initializer().begin(), graph.sparse_initializer().end(),
                     [&](const auto& s) { return s.values().name() == name; }) ||
         std::any_of(graph.node().begin(), graph.node().end(), [&](const auto& node) {
           return std::find(node.output().begin(), node.output().end(), name) !=
                  node.output().end();
         });
}

void rename_in_body(onnx::GraphProto* body, std::string_view from, const std::string& to) {
  if (defines(*body, from)) return;
  rename_in_nodes(body->mutable_node(), from, to);
  for (auto& output : *body->mutable_output())
    if (output.name() == from) output.set_name(to);
}

template <typename Nodes>
void rename_in_nodes(Nodes* nodes, std::string_view from, const std::string& to) {
  for (auto& node : *nodes) {
    for (auto& input : *node.mutable_input())
      if (input == from) input = to;
    for (auto& output : *node.mutable_output())
      if (output == from) output = to;
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) rename_in_body(attribute.mutable_g(), from, to);
      for (auto& g : *attribute.mutable_graphs()) rename_in_body(&g, from, to);
    }
  }
}

template <typename Items>
void rename_items(Items* items, std::string_view from, const std::string& to) {
  for (auto& item : *items)
    if (item.name() == from) item.set_name(to);
}

void add_defined(const onnx::GraphProto& graph, std::set<std::string>& names) {
  for (const auto& item : graph.input()) names.insert(item.name());
  for (const auto& item : graph.initializer()) names.insert(item.name());
  for (const auto& item : graph.sparse_initializer()) names.insert(item.values().name());
  for (const auto& node : graph.node())
    for (const std::string& output : node.output())
      if (!output.empty()) names.insert(output);
}

int rename_shadowing(onnx::GraphProto& graph, std::set<std::string> scope, UniqueNames& names) {
  add_defined(graph, scope);
  int renamed = 0;
  const auto visit = [&](onnx::GraphProto& body) {
    std::set<std::string> defined;
    add_defined(body, defined);
    for (const std::string& name : defined) {
      if (!scope.contains(name)) continue;
      rename_tensor(body, name, names.make(name));
      ++renamed;
    }
    renamed += rename_shadowing(body, scope, names);
  };
  for (auto& node : *graph.mutable_node()) {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) visit(*attribute.mutable_g());
      for (auto& body : *attribute.mutable_graphs()) visit(body);
    }
  }
  return renamed;
}

bool has_bodies(const onnx::GraphProto& graph) {
  for (const auto& node : graph.node())
    for (const auto& attribute : node.attribute())
      if (attribute.has_g() || attribute.graphs_size() > 0) return true;
  return false;
}

}  // namespace

int rename_shadowing(onnx::ModelProto& model) {
  if (!has_bodies(model.graph())) return 0;
  UniqueNames names(model);
  return rename_shadowing(*model.mutable_graph(), {}, names);
}

std::string_view normalized_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

std::string node_label(const onnx::NodeProto& node) {
  const std::string_view domain = normalized_domain(node.domain());
  const std::string op =
      domain.empty() ? node.op_type() : fmt::format("{}.{}", domain, node.op_type());
  if (!node.name().empty()) return fmt::format("{} '{}'", op, node.name());
  for (const auto& output : node.output())
    if (!output.empty()) return fmt::format("{} (makes '{}')", op, output);
  return fmt::format("{} (without name and output)", op);
}

UniqueNames::UniqueNames(const onnx::ModelProto& model) { add(model, true); }

UniqueNames UniqueNames::of_tensors(const onnx::ModelProto& model) {
  UniqueNames names;
  names.add(model, false);
  return names;
}

void UniqueNames::add(const onnx::ModelProto& model, bool with_nodes) {
  const auto add_nodes = [&](const auto& nodes) {
    for (const auto& node : nodes) {
      if (with_nodes) taken_.insert(node.name());
      taken_.insert(node.input().begin(), node.input().end());
      taken_.insert(node.output().begin(), node.output().end());
    }
  };
  const auto add_graph = [&](const onnx::GraphProto& graph) {
    for (const auto& item : graph.input()) taken_.insert(item.name());
    for (const auto& item : graph.output()) taken_.insert(item.name());
    for (const auto& item : graph.value_info()) taken_.insert(item.name());
    for (const auto& item : graph.initializer()) taken_.insert(item.name());
    for (const auto& item : graph.sparse_initializer()) taken_.insert(item.values().name());
    add_nodes(graph.node());
  };
  for_each_graph(model.graph(), add_graph);
  for (const auto& function : model.functions()) {
    taken_.insert(function.input().begin(), function.input().end());
    taken_.insert(function.output().begin(), function.output().end());
    add_nodes(function.node());
  }
  taken_.insert("");  // an absent optional input: never a name
}

std::string UniqueNames::make(std::string_view base) {
  std::string name(base);
  for (int i = 1; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

bool UniqueNames::taken(std::string_view name) const { return taken_.contains(std::string(name)); }

void rename_tensor(onnx::GraphProto& graph, std::string_view from, const std::string& to) {
  const std::string old(from);  // `from` may be a view of a name that changes
  rename_in_nodes(graph.mutable_node(), old, to);
  rename_items(graph.mutable_input(), old, to);
  rename_items(graph.mutable_output(), old, to);
  rename_items(graph.mutable_value_info(), old, to);
  rename_items(graph.mutable_initializer(), old, to);
  for (auto& s : *graph.mutable_sparse_initializer())
    if (s.values().name() == old) s.mutable_values()->set_name(to);
  for (auto& a : *graph.mutable_quantization_annotation()) {
    if (a.tensor_name() == old) a.set_tensor_name(to);
    for (auto& entry : *a.mutable_quant_parameter_tensor_names())
      if (entry.value() == old) entry.set_value(to);
  }
}

Status import_opset(onnx::ModelProto& model, std::string_view domain, std::int64_t version) {
  for (const auto& import : model.opset_import()) {
    if (normalized_domain(import.domain()) != normalized_domain(domain)) continue;
    if (import.version() == version) return {};
    return FailedPrecondition("the model imports '{}' at version {}, and version {} is needed",
                              domain.empty() ? "ai.onnx" : domain, import.version(), version);
  }
  auto* import = model.add_opset_import();
  import->set_domain(std::string(domain));
  import->set_version(version);
  return {};
}

const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

std::int64_t attribute_or(const onnx::NodeProto& node, std::string_view name,
                          std::int64_t fallback) {
  const auto* a = find_attribute(node, name);
  return a != nullptr && a->type() == onnx::AttributeProto::INT ? a->i() : fallback;
}

float attribute_or(const onnx::NodeProto& node, std::string_view name, float fallback) {
  const auto* a = find_attribute(node, name);
  return a != nullptr && a->type() == onnx::AttributeProto::FLOAT ? a->f() : fallback;
}

std::string attribute_or(const onnx::NodeProto& node, std::string_view name, const char* fallback) {
  const auto* a = find_attribute(node, name);
  return a != nullptr && a->type() == onnx::AttributeProto::STRING ? a->s() : fallback;
}

std::vector<std::int64_t> attribute_ints(const onnx::NodeProto& node, std::string_view name) {
  const auto* a = find_attribute(node, name);
  if (a == nullptr) return {};
  return {a->ints().begin(), a->ints().end()};
}

}  // namespace tenonnx
