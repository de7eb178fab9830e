// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/status.h"
#include "metrics/elements.h"
#include "metrics/tensor_error.h"
#include "model/graph.h"
#include "numerics/suspects.h"

namespace tenonnx {
namespace {

std::string text_of(const onnx::AttributeProto* attribute) {
  if (attribute == nullptr) return "absent";
  switch (attribute->type()) {
    case onnx::AttributeProto::INT:
      return fmt::format("{}", attribute->i());
    case onnx::AttributeProto::FLOAT:
      return fmt::format("{:g}", attribute->f());
    case onnx::AttributeProto::STRING:
      return attribute->s();
    case onnx::AttributeProto::INTS:
      return fmt::format("[{}]", fmt::join(attribute->ints(), ", "));
    case onnx::AttributeProto::FLOATS:
      return fmt::format("[{}]", fmt::join(attribute->floats(), ", "));
    default:
      return "another value";
  }
}

FaultKind kind_of_attribute(const std::string& op, const std::string& name) {
  if (name == "epsilon") return FaultKind::kEpsilon;
  if (op == "GridSample" || op == "Resize") return FaultKind::kSampling;
  if (name == "axis" || name == "axes" || name == "perm") return FaultKind::kLayout;
  if (op == "Cast") return FaultKind::kPrecision;
  if (op == "TopK") return FaultKind::kSelection;
  return FaultKind::kKernel;
}

std::vector<const onnx::NodeProto*> nodes_of(const Model& model) {
  std::vector<const onnx::NodeProto*> out;
  for (const onnx::NodeProto& node : model.proto().graph().node())
    if (node.op_type() != "Constant") out.push_back(&node);
  return out;
}

// A factor or an addend of one element.
bool has_scalar(const Model& model, const std::vector<const onnx::NodeProto*>& nodes,
                const std::string& op) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const onnx::NodeProto* node) {
    if (node->op_type() != op) return false;
    return std::any_of(node->input().begin(), node->input().end(), [&](const std::string& name) {
      const auto constant = model.constant(name);
      return constant.ok() && constant->size() == 1;
    });
  });
}

// Operators that one has more of than the other.
KindFinding other_nodes(const Model& reference, const std::vector<const onnx::NodeProto*>& a,
                        const Model& candidate, const std::vector<const onnx::NodeProto*>& b) {
  std::map<std::string, int> count;
  for (const auto* node : a) --count[node->op_type()];
  for (const auto* node : b) ++count[node->op_type()];
  std::string more, fewer;
  KindFinding out;
  for (const auto& [op, n] : count) {
    if (n == 0) continue;
    std::string& list = n > 0 ? more : fewer;
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", std::abs(n), op);
    if (op == "Cast") out.kind = FaultKind::kPrecision;
    if (op == "Transpose") out.kind = FaultKind::kLayout;
  }
  // What is written in place of a GridSample has Casts and Transposes too.
  if (const auto samples = count.find("GridSample"); samples != count.end() && samples->second != 0)
    out.kind = FaultKind::kSampling;
  // Nothing but a factor, or an addend.
  std::erase_if(count, [](const auto& entry) { return entry.second == 0; });
  if (count.size() == 1) {
    const auto& [op, n] = *count.begin();
    const bool scalar = n > 0 ? has_scalar(candidate, b, op) : has_scalar(reference, a, op);
    if (scalar && (op == "Mul" || op == "Div")) out.kind = FaultKind::kScale;
    if (scalar && (op == "Add" || op == "Sub")) out.kind = FaultKind::kOffset;
  }
  if (more.empty() && fewer.empty()) return out;
  out.text = fmt::format(
      "the graphs differ here: the candidate has {}{}{}", more.empty() ? "" : more + " more",
      more.empty() || fewer.empty() ? "" : " and ", fewer.empty() ? "" : fewer + " fewer");
  out.explained = 1;
  return out;
}

// Tensors that both have, in another place: outputs exchanged, an input that is another tensor.
KindFinding other_wires(const std::vector<const onnx::NodeProto*>& a,
                        const std::vector<const onnx::NodeProto*>& b, const FedTensors& names) {
  const auto compare = [&](const char* what, const onnx::NodeProto& node, const auto& ours,
                           const auto& theirs) -> KindFinding {
    for (int k = 0; k < ours.size() && k < theirs.size(); ++k) {
      const auto there = names.find(theirs[k]);
      if (there == names.end() || there->second == ours[k]) continue;
      // One of the reference's that is not shared may be the same under another name.
      if (std::none_of(names.begin(), names.end(),
                       [&](const auto& entry) { return entry.second == ours[k]; }))
        continue;
      return {FaultKind::kLayout,
              fmt::format("the graphs differ here: {} {} of {} is '{}', in the reference '{}'",
                          what, k, node.op_type(), there->second, ours[k]),
              1};
    }
    return {};
  };
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    KindFinding found = compare("output", *a[i], a[i]->output(), b[i]->output());
    if (found.text.empty()) found = compare("input", *a[i], a[i]->input(), b[i]->input());
    if (!found.text.empty()) return found;
  }
  return {};
}

}  // namespace

KindFinding graph_difference(const Model& reference, const Model& candidate,
                             const FedTensors& names) {
  const auto a = nodes_of(reference), b = nodes_of(candidate);
  if (KindFinding found = other_nodes(reference, a, candidate, b); !found.text.empty())
    return found;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i]->op_type() != b[i]->op_type()) return {};  // another order: nothing to pair
    std::vector<std::string> names;
    for (const auto* node : {a[i], b[i]})
      for (const onnx::AttributeProto& attribute : node->attribute())
        if (std::find(names.begin(), names.end(), attribute.name()) == names.end())
          names.push_back(attribute.name());
    for (const std::string& name : names) {
      const std::string ours = text_of(find_attribute(*a[i], name));
      const std::string theirs = text_of(find_attribute(*b[i], name));
      if (ours == theirs) continue;
      return {kind_of_attribute(a[i]->op_type(), name),
              fmt::format("the graphs differ here: '{}' of {} is {}, in the reference {}", name,
                          a[i]->op_type(), theirs, ours),
              1};
    }
    for (int k = 0; k < a[i]->input_size() && k < b[i]->input_size(); ++k) {
      const auto ours = reference.constant(a[i]->input(k));
      const auto theirs = candidate.constant(b[i]->input(k));
      if (!ours.ok() || !theirs.ok()) continue;
      const auto same = compare_identical(*ours, *theirs);
      if (same.ok() && same->identical) continue;
      FaultKind kind = FaultKind::kWeights;
      if (!is_floating(ours->dtype()))
        kind = a[i]->op_type().starts_with("Gather") ? FaultKind::kIndices : FaultKind::kLayout;
      return {kind,
              same.ok() ? fmt::format("the graphs differ here: {} of {} elements of constant input "
                                      "{} of {}",
                                      same->differing, ours->size(), k, a[i]->op_type())
                        : fmt::format("the graphs differ here: constant input {} of {} is {}{}, in "
                                      "the reference {}{}",
                                      k, a[i]->op_type(), to_string(theirs->dtype()),
                                      to_string(theirs->shape()), to_string(ours->dtype()),
                                      to_string(ours->shape())),
              1};
    }
  }
  return other_wires(a, b, names);
}

}  // namespace tenonnx
