// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// eliminate_common_subexpressions: computes once what is computed twice.
//
// before: a = Sigmoid(x); b = Sigmoid(x)       after: every use of b reads a
//
// Conditions: the same operator, attributes and inputs (Add, Mul, And, Or and Equal in either
// order), and outputs present at the same places.
// Class bitwise.
// Refuses: two that both make outputs of the graph. Never merged: random operators, Dropout in
// training mode, Constant, operators with bodies, operators outside ai.onnx.
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "base/status.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

constexpr std::array<std::string_view, 7> kNeverMerged = {
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
    "Multinomial",  "Bernoulli",        "Constant"};
constexpr std::array<std::string_view, 5> kCommutative = {"Add", "Mul", "And", "Or", "Equal"};

template <typename Container>
bool contains(const Container& container, std::string_view name) {
  return std::find(container.begin(), container.end(), name) != container.end();
}

// What two nodes that compute the same share; "" for a node that must stay.
std::string key_of(const onnx::NodeProto& node) {
  if (!normalized_domain(node.domain()).empty() || contains(kNeverMerged, node.op_type()))
    return "";
  if (node.op_type() == "Dropout" && node.input_size() > 2) return "";
  std::vector<std::string> inputs(node.input().begin(), node.input().end());
  if (contains(kCommutative, node.op_type())) std::sort(inputs.begin(), inputs.end());
  std::vector<std::string> parts;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g() || attribute.graphs_size() > 0) return "";
    onnx::AttributeProto plain = attribute;
    plain.clear_doc_string();
    parts.push_back(plain.SerializeAsString());
  }
  std::sort(parts.begin(), parts.end());
  onnx::NodeProto key;  // protobuf keeps the parts apart whatever they hold
  key.set_op_type(node.op_type());
  for (std::string& input : inputs) key.add_input(std::move(input));
  for (std::string& part : parts) key.add_output(std::move(part));
  for (const std::string& output : node.output()) key.add_output(output.empty() ? "-" : "+");
  return key.SerializeAsString();
}

}  // namespace

namespace passes {

Result<PassOutcome> eliminate_common_subexpressions(Model& model, const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("eliminate_common_subexpressions", options, {}));
  Rewriter r(model);
  std::unordered_map<std::string, int> first;  // key -> node, of this sweep
  TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
    if (i == 0) first.clear();
    const onnx::NodeProto& node = r.node(i);
    std::string key = key_of(node);
    if (key.empty()) return;
    const auto [found, is_new] = first.try_emplace(std::move(key), i);
    if (is_new) return;
    if (!r.begin({found->second, i})) {
      found->second = i;  // the next of the kind may take this one
      return;
    }
    const onnx::NodeProto& same = r.node(found->second);
    for (int k = 0; k < node.output_size(); ++k) {
      if (node.output(k).empty()) continue;
      if (!r.alias(node.output(k), same.output(k)))
        return r.refuse(i,
                        fmt::format("computes what {} computes, but both make outputs of the graph",
                                    node_label(same)));
    }
    r.remove(i);
    r.apply(i, fmt::format("computes what {} computes", node_label(same)));
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
