// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/fold_rules.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <string>

#include "model/graph.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

constexpr std::array<std::string_view, 9> kNeverFolded = {
    "RandomNormal", "RandomNormalLike", "RandomUniform",    "RandomUniformLike",    "Multinomial",
    "Bernoulli",    "QuantizeLinear",   "DequantizeLinear", "DynamicQuantizeLinear"};
constexpr std::array<std::string_view, 3> kBoundedByInput = {"NonZero", "Compress", "Unique"};

template <typename Container>
bool contains(const Container& container, std::string_view name) {
  return std::find(container.begin(), container.end(), name) != container.end();
}

}  // namespace

bool never_folded(const onnx::NodeProto& node) {
  if (!normalized_domain(node.domain()).empty()) return true;
  if (contains(kNeverFolded, node.op_type())) return true;
  if (node.op_type() == "Dropout" && node.input_size() > 2) return true;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    bool forbidden = false;
    const auto check = [&](const onnx::GraphProto& body) {
      for (const onnx::NodeProto& inner : body.node()) forbidden |= never_folded(inner);
    };
    if (attribute.has_g()) check(attribute.g());
    for (const onnx::GraphProto& body : attribute.graphs()) check(body);
    if (forbidden) return true;
  }
  return false;
}

bool size_is_bounded(const onnx::NodeProto& node) {
  return contains(kBoundedByInput, node.op_type());
}

std::vector<std::string_view> all_inputs(const onnx::NodeProto& node) {
  std::vector<std::string_view> names;
  for (const std::string& name : node.input())
    if (!name.empty()) names.push_back(name);
  for (const std::string_view name : captured_names(node)) names.push_back(name);
  return names;
}

std::int64_t bytes_of(const onnx::TensorProto& t) {
  const std::int64_t count = element_count(Shape(t.dims().begin(), t.dims().end()));
  return count < 0 ? kLargestIntermediate : count * onnx_type_bits(t.data_type()) / 8;
}

std::int64_t bytes_of(const InferredType& type) {
  if (type.onnx_type == 0 || !type.is_static()) return -1;
  const std::int64_t count = element_count(type.shape);
  if (count < 0 || count > kLargestIntermediate) return kLargestIntermediate + 1;
  return count * onnx_type_bits(type.onnx_type) / 8;
}

bool makes(const onnx::NodeProto& node, std::string_view name) {
  return contains(node.output(), name);
}

bool constant_value(const onnx::NodeProto& node, onnx::TensorProto& value) {
  if (node.op_type() != "Constant" || !normalized_domain(node.domain()).empty()) return false;
  if (node.attribute_size() != 1 || node.output_size() != 1) return false;
  const onnx::AttributeProto& a = node.attribute(0);
  if (a.name() == "value") {
    if (from_onnx_type(a.t().data_type()) == DType::kUndefined) return false;
    value = a.t();
  } else if (a.name() == "value_float" || a.name() == "value_floats") {
    value.set_data_type(onnx::TensorProto::FLOAT);
    if (a.name() == "value_floats") {
      value.add_dims(a.floats_size());
      *value.mutable_float_data() = a.floats();
    } else {
      value.add_float_data(a.f());
    }
  } else if (a.name() == "value_int" || a.name() == "value_ints") {
    value.set_data_type(onnx::TensorProto::INT64);
    if (a.name() == "value_ints") {
      value.add_dims(a.ints_size());
      *value.mutable_int64_data() = a.ints();
    } else {
      value.add_int64_data(a.i());
    }
  } else {
    return false;
  }
  value.set_name(node.output(0));
  value.clear_doc_string();
  return true;
}

Tensor shape_value(const onnx::NodeProto& node, const Shape& shape) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto bound = [rank](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = bound(attribute_or(node, "start", std::int64_t{0}));
  const std::int64_t end = std::max(start, bound(attribute_or(node, "end", rank)));
  return Tensor::from<std::int64_t>(
      DType::kInt64, {end - start},
      std::vector<std::int64_t>(shape.begin() + start, shape.begin() + end));
}

}  // namespace tenonnx
