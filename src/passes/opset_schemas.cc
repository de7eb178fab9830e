// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/opset_schemas.h"

#include <algorithm>

#include "model/guarded_schemas.h"

namespace tenonnx {
namespace {

bool same_parameters(const std::vector<onnx::OpSchema::FormalParameter>& a,
                     const std::vector<onnx::OpSchema::FormalParameter>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.GetName() == y.GetName() && x.GetOption() == y.GetOption() &&
           x.GetTypeStr() == y.GetTypeStr() && x.GetIsHomogeneous() == y.GetIsHomogeneous();
  });
}

}  // namespace

const onnx::OpSchema* schema_at(const std::string& op, std::int64_t version) {
  return guarded_schemas().GetSchema(op, static_cast<int>(version), "");
}

bool same_signature(const onnx::OpSchema& a, const onnx::OpSchema& b) {
  if (a.attributes().size() != b.attributes().size()) return false;
  for (const auto& [name, attribute] : a.attributes()) {
    const auto other = b.attributes().find(name);
    if (other == b.attributes().end() || other->second.type != attribute.type ||
        other->second.required != attribute.required ||
        other->second.default_value.SerializeAsString() !=
            attribute.default_value.SerializeAsString())
      return false;
  }
  return same_parameters(a.inputs(), b.inputs()) && same_parameters(a.outputs(), b.outputs());
}

const onnx::OpSchema::FormalParameter* formal_parameter(
    const std::vector<onnx::OpSchema::FormalParameter>& formals, int index) {
  if (formals.empty()) return nullptr;
  return &formals[std::min(static_cast<std::size_t>(index), formals.size() - 1)];
}

bool takes(const onnx::OpSchema::FormalParameter& parameter, const std::string& type) {
  return std::any_of(parameter.GetTypes().begin(), parameter.GetTypes().end(),
                     [&](const std::string* t) { return *t == type; });
}

bool takes_all_of(const onnx::OpSchema::FormalParameter& parameter,
                  const onnx::OpSchema::FormalParameter& other) {
  return std::all_of(other.GetTypes().begin(), other.GetTypes().end(),
                     [&](const std::string* t) { return takes(parameter, *t); });
}

}  // namespace tenonnx
