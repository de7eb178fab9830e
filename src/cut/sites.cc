// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "cut/sites.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "model/selects.h"

namespace tenonnx {
namespace {

using Names = std::unordered_set<std::string_view>;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

bool is_onnx(const onnx::NodeProto& node) { return normalized_domain(node.domain()).empty(); }

bool named_like(const onnx::NodeProto& node, std::string_view part) {
  return !is_onnx(node) && node.op_type().find(part) != std::string::npos;
}

// MultiscaleDeformableAttnPlugin_TRT, MSDeformAttn, ...: value first, locations behind it. Without
// DeformConv, which is a convolution.
bool is_deformable_attention(const onnx::NodeProto& node) {
  return named_like(node, "DeformAttn") || named_like(node, "DeformableAttn") ||
         named_like(node, "DeformableAttention");
}

bool is_roi_align(const onnx::NodeProto& node) {
  return node.op_type() == "RoiAlign" || named_like(node, "ROIAlign") ||
         named_like(node, "RoiAlign");
}

bool samples(const onnx::NodeProto& node) {
  return node.op_type() == "GridSample" || is_deformable_attention(node) || is_roi_align(node);
}

bool is_gather(const onnx::NodeProto& node) {
  static const Names kGathers = {"Gather", "GatherElements", "GatherND"};
  return is_onnx(node) && kGathers.contains(node.op_type());
}

bool has_bodies(const onnx::NodeProto& node) {
  return std::any_of(
      node.attribute().begin(), node.attribute().end(),
      [](const onnx::AttributeProto& a) { return a.has_g() || a.graphs_size() > 0; });
}

}  // namespace

bool is_normalization(const onnx::NodeProto& node) {
  static const Names kNormalizations = {"Softmax",
                                        "LogSoftmax",
                                        "LayerNormalization",
                                        "SimplifiedLayerNormalization",
                                        "LpNormalization",
                                        "RMSNormalization",
                                        "GroupNormalization",
                                        "GroupNorm",
                                        "InstanceNormalization",
                                        "MeanVarianceNormalization",
                                        "SkipLayerNormalization",
                                        "SkipSimplifiedLayerNormalization"};
  return kNormalizations.contains(node.op_type());
}

bool is_layer(const onnx::NodeProto& node) {
  static const Names kLayers = {"Conv",
                                "ConvTranspose",
                                "ConvInteger",
                                "DeformConv",
                                "QLinearConv",
                                "FusedConv",
                                "NhwcConv",
                                "MatMul",
                                "Gemm",
                                "MatMulInteger",
                                "QLinearMatMul",
                                "QGemm",
                                "FusedMatMul",
                                "FusedGemm",
                                "MatMulNBits",
                                "Attention",
                                "MultiHeadAttention",
                                "GroupQueryAttention",
                                "LSTM",
                                "GRU",
                                "RNN"};
  return kLayers.contains(node.op_type());
}

int count_nodes(const onnx::NodeProto& node, bool (*test)(const onnx::NodeProto&)) {
  int count = test(node) ? 1 : 0;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    const auto body = [&](const onnx::GraphProto& graph) {
      for (const onnx::NodeProto& inner : graph.node()) count += count_nodes(inner, test);
    };
    if (attribute.has_g()) body(attribute.g());
    for (const onnx::GraphProto& graph : attribute.graphs()) body(graph);
  }
  return count;
}

std::vector<int> selection_nodes(const DataFlow& flow) {
  std::vector<int> out;
  for (const int node : flow.nodes())
    if (count_nodes(flow.node(node), is_selection) > 0) out.push_back(node);
  return out;
}

std::vector<SamplingSite> sampling_sites(const DataFlow& flow) {
  // What a selection has chosen: behind its indices only what else is computed from the image
  // counts as a place.
  TensorSet chosen(flow.tensors(), false);
  for (const int node : selection_nodes(flow))
    for (const int id : flow.outputs(node)) chosen[at(id)] = true;
  const auto computed = [&](int indices) {
    if (chosen[at(indices)]) return false;
    const TensorSet before = flow.ancestors({indices}, chosen);
    return std::any_of(flow.sources().begin(), flow.sources().end(),
                       [&](int source) { return before[at(source)]; });
  };
  std::vector<SamplingSite> out;
  for (const int n : flow.nodes()) {
    const onnx::NodeProto& node = flow.node(n);
    SamplingSite site;
    site.node = n;
    if (has_bodies(node)) {
      if (count_nodes(node, samples) == 0) continue;
      site.data = site.places = flow.inputs(n);
    } else if (samples(node)) {
      const int data = flow.input_at(n, 0);
      if (data < 0) continue;  // a constant picture
      site.data = {data};
      for (int i = 1; i < node.input_size(); ++i)
        if (const int place = flow.input_at(n, i); place >= 0) site.places.push_back(place);
    } else if (is_gather(node)) {
      const int data = flow.input_at(n, 0);
      const int indices = flow.input_at(n, 1);
      if (data < 0 || indices < 0 || !computed(indices)) continue;
      site.data = {data};
      site.places = {indices};
      site.gathered = true;
    } else {
      continue;
    }
    out.push_back(std::move(site));
  }
  return out;
}

}  // namespace tenonnx
