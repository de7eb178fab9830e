// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/check.h"

#include <onnx/onnx_pb.h>

#include <map>
#include <set>
#include <unordered_map>

#include "base/status.h"
#include "model/check_operators.h"
#include "model/graph.h"
#include "model/model.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

using onnx::TensorProto;

// Who defines a name: a node, or nullptr for an input or initializer.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string_view, const onnx::NodeProto*> names;
  bool sees(std::string_view name) const {
    for (const Scope* s = this; s != nullptr; s = s->outer)
      if (s->names.contains(name)) return true;
    return false;
  }
};

Status check_node(const onnx::NodeProto& node, Scope& scope);

Status define(Scope& scope, std::string_view name, const onnx::NodeProto* node) {
  const auto [it, fresh] = scope.names.try_emplace(name, node);
  if (fresh) return {};
  return DataLoss("two definitions of tensor '{}': {} and {}", name,
                  it->second ? node_label(*it->second) : "a graph input or initializer",
                  node ? node_label(*node) : "a graph input or initializer");
}

Status check_graph(const onnx::GraphProto& graph, const Scope* outer) {
  Scope scope{outer, {}};
  scope.names.reserve(static_cast<std::size_t>(graph.node_size()) +
                      static_cast<std::size_t>(graph.initializer_size()));
  for (const auto& input : graph.input()) {
    if (input.name().empty()) return DataLoss("a graph input has no name");
    TENONNX_RETURN_IF_ERROR(define(scope, input.name(), nullptr));
  }
  std::set<std::string_view> stored;
  const auto store = [&](std::string_view name) -> Status {
    if (name.empty()) return DataLoss("an initializer has no name");
    if (!stored.insert(name).second) return DataLoss("two initializers are named '{}'", name);
    scope.names.try_emplace(name, nullptr);  // it may give an input its default
    return {};
  };
  for (const auto& t : graph.initializer()) TENONNX_RETURN_IF_ERROR(store(t.name()));
  for (const auto& s : graph.sparse_initializer())
    TENONNX_RETURN_IF_ERROR(store(s.values().name()));
  for (const auto& node : graph.node()) TENONNX_RETURN_IF_ERROR(check_node(node, scope));

  std::set<std::string_view> outputs;
  for (const auto& output : graph.output()) {
    if (output.name().empty()) return DataLoss("a graph output has no name");
    if (!scope.names.contains(output.name()))
      return DataLoss("nothing makes the graph output '{}'", output.name());
    if (!outputs.insert(output.name()).second)
      return DataLoss("two graph outputs are named '{}'", output.name());
  }
  return {};
}

Status check_node(const onnx::NodeProto& node, Scope& scope) {
  if (node.op_type().empty()) return DataLoss("{} has no operator type", node_label(node));
  for (const auto& input : node.input())
    if (!input.empty() && !scope.sees(input))
      return DataLoss("{} uses '{}', which no node before it makes and no input or initializer is",
                      node_label(node), input);
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g())
      TENONNX_RETURN_IF_ERROR(check_graph(attribute.g(), &scope).at(node_label(node)));
    for (const auto& g : attribute.graphs())
      TENONNX_RETURN_IF_ERROR(check_graph(g, &scope).at(node_label(node)));
  }
  for (const auto& output : node.output())
    if (!output.empty()) TENONNX_RETURN_IF_ERROR(define(scope, output, &node));
  return {};
}

Status check_function(const onnx::FunctionProto& function) {
  Scope scope;
  for (const auto& input : function.input()) TENONNX_RETURN_IF_ERROR(define(scope, input, nullptr));
  for (const auto& node : function.node()) TENONNX_RETURN_IF_ERROR(check_node(node, scope));
  for (const auto& output : function.output())
    if (!scope.names.contains(output)) return DataLoss("nothing makes its output '{}'", output);
  return {};
}

using FunctionId = std::tuple<std::string, std::string, std::string>;

template <typename Nodes>
void collect_calls(const Nodes& nodes, std::set<FunctionId>& calls) {
  for (const auto& node : nodes) {
    calls.emplace(normalized_domain(node.domain()), node.op_type(), node.overload());
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) collect_calls(attribute.g().node(), calls);
      for (const auto& g : attribute.graphs()) collect_calls(g.node(), calls);
    }
  }
}

// A function that calls itself, over others or not, could never be inlined.
Status check_functions(const onnx::ModelProto& model) {
  std::map<FunctionId, std::set<FunctionId>> calls;
  for (const auto& f : model.functions()) {
    const FunctionId id(normalized_domain(f.domain()), f.name(), f.overload());
    const auto [it, fresh] = calls.try_emplace(id);
    if (!fresh) return DataLoss("two functions are named '{}.{}'", f.domain(), f.name());
    TENONNX_RETURN_IF_ERROR(
        check_function(f).at(fmt::format("function '{}.{}'", f.domain(), f.name())));
    collect_calls(f.node(), it->second);
  }
  // Take away functions that call none of the rest until none is left.
  for (bool progress = true; progress && !calls.empty();) {
    progress = std::erase_if(calls, [&](const auto& item) {
                 for (const FunctionId& callee : item.second)
                   if (calls.contains(callee)) return false;
                 return true;
               }) > 0;
  }
  if (!calls.empty())
    return DataLoss("the function '{}.{}' calls itself, perhaps through others",
                    std::get<0>(calls.begin()->first), std::get<1>(calls.begin()->first));
  return {};
}

// How many entries of its typed field a tensor of `count` elements has; -1 for an unknown type.
struct TypedField {
  std::int64_t have = 0;
  std::int64_t want = 0;
};

TypedField typed_field(const TensorProto& t, std::int64_t count) {
  switch (t.data_type()) {
    case TensorProto::FLOAT:
      return {t.float_data_size(), count};
    case TensorProto::COMPLEX64:
      return {t.float_data_size(), 2 * count};
    case TensorProto::DOUBLE:
      return {t.double_data_size(), count};
    case TensorProto::COMPLEX128:
      return {t.double_data_size(), 2 * count};
    case TensorProto::INT64:
      return {t.int64_data_size(), count};
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      return {t.uint64_data_size(), count};
    case TensorProto::STRING:
      return {t.string_data_size(), count};
    default:
      break;
  }
  const int bits = onnx_type_bits(t.data_type());
  if (bits >= 8) return {t.int32_data_size(), count};
  const std::int64_t per_byte = 8 / bits;  // packed, as the bytes of raw_data
  return {t.int32_data_size(), (count + per_byte - 1) / per_byte};
}

Status does_not_fill(const TensorProto& t, const Shape& shape, std::uint64_t needed,
                     std::uint64_t bytes) {
  return DataLoss("tensor '{}': {} {} needs {} bytes, and its data has {}", t.name(),
                  onnx_type_name(t.data_type()), to_string(shape), needed, bytes);
}

Status check_tensor(const TensorProto& t) {
  TENONNX_ASSIGN_OR_RETURN(const std::uint64_t bytes, tensor_data_bytes(t));
  const Shape shape(t.dims().begin(), t.dims().end());
  if (t.has_segment())
    return Unsupported("tensor '{}' is stored in segments; save the model again", t.name());
  if (is_external(t)) {
    if (t.data_type() == TensorProto::STRING)
      return DataLoss("tensor '{}' holds strings, which cannot be external", t.name());
    TENONNX_ASSIGN_OR_RETURN(const ExternalRange range, external_range(t));
    if (range.has_length && range.length != bytes && is_shared(t))
      return does_not_fill(t, shape, bytes, range.length);
    if (range.has_length && range.length != bytes)
      return DataLoss("tensor '{}': {} {} needs {} bytes, and its external data has length {}",
                      t.name(), onnx_type_name(t.data_type()), to_string(shape), bytes,
                      range.length);
    return {};
  }
  if (t.has_raw_data()) {
    if (t.data_type() == TensorProto::STRING)
      return DataLoss("tensor '{}' holds strings, which cannot be raw data", t.name());
    if (t.raw_data().size() == bytes) return {};
    return does_not_fill(t, shape, bytes, t.raw_data().size());
  }
  const TypedField field = typed_field(t, element_count(shape));
  if (field.have == field.want) return {};
  return DataLoss("tensor '{}': {} {} needs {} values, and it has {}", t.name(),
                  onnx_type_name(t.data_type()), to_string(shape), field.want, field.have);
}

Status check_versions(const onnx::ModelProto& model) {
  if (model.ir_version() > kMaxIrVersion)
    return Unsupported(
        "IR version {} is newer than {}, the newest that ONNX Runtime 1.29 takes; "
        "save the model with an older onnx package, or set ir_version to {} where "
        "it uses nothing newer",
        model.ir_version(), kMaxIrVersion, kMaxIrVersion);
  if (model.ir_version() < 1) return DataLoss("no IR version; this is not an ONNX model");
  if (model.ir_version() >= 3 && model.opset_import_size() == 0)
    return DataLoss("no opset is imported; the file may be cut off");
  std::set<std::string_view> seen;
  for (const auto& import : model.opset_import()) {
    const std::string_view domain = normalized_domain(import.domain());
    if (!seen.insert(domain).second)
      return DataLoss("the domain '{}' is imported twice", domain.empty() ? "ai.onnx" : domain);
    if (import.version() < 1)
      return DataLoss("the domain '{}' is imported at version {}",
                      domain.empty() ? "ai.onnx" : domain, import.version());
    if (domain.empty() && import.version() > kMaxOpset)
      return Unsupported(
          "opset {} is newer than {}, the newest that ONNX Runtime 1.29 takes; "
          "export with opset_version={}, or convert with onnx.version_converter",
          import.version(), kMaxOpset, kMaxOpset);
  }
  return {};
}

}  // namespace

Status check_proto(const onnx::ModelProto& model, std::string_view where) {
  const auto run = [&]() -> Status {
    TENONNX_RETURN_IF_ERROR(check_versions(model));
    if (!model.has_graph()) return DataLoss("there is no graph; the file may be cut off");
    TENONNX_RETURN_IF_ERROR(check_graph(model.graph(), nullptr));
    TENONNX_RETURN_IF_ERROR(check_functions(model));
    TENONNX_RETURN_IF_ERROR(check_operators(model));
    Status status;
    for_each_tensor(model, [&](const TensorProto& t) {
      if (status.ok()) status = check_tensor(t);
    });
    return status;
  };
  return run().at(where);
}

Status check_model(const Model& model, std::string_view where) {
  TENONNX_RETURN_IF_ERROR(check_proto(model.proto(), where));
  Status status;
  const auto files = model.external_files();
  for_each_tensor(model.proto(), [&](const TensorProto& t) {
    if (!status.ok() || !is_external(t)) return;
    if (is_shared(t)) {
      status = model.shared_bytes(t).status();
      return;
    }
    const auto range = external_range(t);
    const auto bytes = tensor_data_bytes(t);
    if (!range.ok() || !bytes.ok()) return;  // found above
    for (const ExternalFile& file : files) {
      if (file.location != range->location) continue;
      const std::uint64_t size = file.file->bytes().size();
      if (range->offset > size || *bytes > size - range->offset)
        status = DataLoss(
            "tensor '{}': {} bytes at offset {} reach beyond the {} bytes of '{}'; "
            "the file is cut off or belongs to another model",
            t.name(), *bytes, range->offset, size, file.location);
      return;
    }
    status =
        NotFound("tensor '{}': the external data '{}' is not mapped", t.name(), range->location);
  });
  return status.at(where);
}

}  // namespace tenonnx
