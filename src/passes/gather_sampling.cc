// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/gather_sampling.h"

#include <unordered_set>
#include <vector>

#include "metrics/elements.h"

namespace tenonnx {
namespace {

bool is_integer(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kInt16 ||
         dtype == DType::kInt8 || dtype == DType::kUInt8;
}

// Whether it follows from values of an input of the graph, and not from shapes alone.
bool follows_from_input(const Rewriter& r, const std::string& tensor) {
  std::vector<std::string> open = {tensor};
  std::unordered_set<std::string> seen;
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    if (name.empty() || !seen.insert(name).second) continue;
    const int producer = r.producer(name);
    if (producer < 0) {
      const Value* value = r.index().find(name);
      if (value != nullptr && value->is_input && !value->is_initializer()) return true;
      continue;
    }
    const onnx::NodeProto& node = r.node(producer);
    if (is_op(node, "Shape") || is_op(node, "Size")) continue;
    open.insert(open.end(), node.input().begin(), node.input().end());
  }
  return false;
}

}  // namespace

bool reads_at_indices(const onnx::NodeProto& node) {
  return is_op(node, "Gather") || is_op(node, "GatherElements") || is_op(node, "GatherND");
}

GatherSampling gather_sampling(const Rewriter& r, int node) {
  if (!reads_at_indices(r.node(node)) || !is_floating(r.dtype(r.node(node).input(0))))
    return GatherSampling::kNone;
  std::vector<std::string> open = {r.node(node).input(1)};
  std::unordered_set<std::string> seen;
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    if (name.empty() || !seen.insert(name).second) continue;
    const int producer = r.producer(name);
    if (producer < 0) continue;
    const onnx::NodeProto& made = r.node(producer);
    if (is_op(made, "Cast") && is_floating(r.dtype(made.input(0)))) {
      if (!follows_from_input(r, made.input(0))) continue;
      if (r.producer(made.input(0), "Floor") >= 0) return GatherSampling::kFloored;
      if (r.producer(made.input(0), "Round") >= 0) return GatherSampling::kRounded;
      return GatherSampling::kCutOff;
    }
    // Whole numbers of whole numbers: what TopK or ArgMax makes of floats is no coordinate.
    for (const std::string& input : made.input())
      if (is_integer(r.dtype(input))) open.push_back(input);
  }
  return GatherSampling::kNone;
}

std::string why_not_matched(GatherSampling sampling) {
  constexpr const char* kOnly =
      "sampling is written with Gather there, and GridSample alone is matched";
  switch (sampling) {
    case GatherSampling::kNone:
      break;
    case GatherSampling::kCutOff:
      return std::string("it reads the pixel at int(coordinate), as \"discrete\" models do: ") +
             kOnly +
             ". Devices without GridSample take it as it is; with GridSample the same weights are "
             "another model";
    case GatherSampling::kRounded:
      return std::string("it reads the pixel nearest to a coordinate: ") + kOnly +
             ": export GridSample of mode nearest";
    case GatherSampling::kFloored:
      return std::string("it reads a neighbour at floor(coordinate), as bilinear sampling does: ") +
             kOnly + ": export the model with grid_sample in place of its own gathers";
  }
  return {};
}

}  // namespace tenonnx
