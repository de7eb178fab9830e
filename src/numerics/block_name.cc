// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/block_name.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>

#include "base/status.h"
#include "model/selects.h"

namespace tenonnx {
namespace {

struct Rule {
  std::string_view part;  // of the scope, in lower case
  std::string_view title;
};

// As DEIM, DEIMv2, D-FINE, RT-DETR, Deformable DETR and BEVFormer name their modules. The first
// that fits counts, so that a norm inside of an attention is a norm.
constexpr std::array kRules = {
    Rule{"rms_norm", "RMSNorm"},
    Rule{"rmsnorm", "RMSNorm"},
    Rule{"layer_norm", "LayerNorm"},
    Rule{"layernorm", "LayerNorm"},
    Rule{"gateway", "gate"},
    Rule{"swish_ffn", "SwiGLU"},
    Rule{"swiglu", "SwiGLU"},
    Rule{"down_proj", "SwiGLU"},
    Rule{"up_proj", "SwiGLU"},
    Rule{"gate_proj", "SwiGLU"},
    Rule{"integral", "FDR integral"},
    Rule{"lqe", "LQE"},
    Rule{"self_attn", "self-attention"},
    Rule{"encoder_attn", "cross-attention"},
    Rule{"cross_attn", "cross-attention"},
    Rule{"cross_attention", "cross-attention"},
    Rule{"spatial_cross", "cross-attention"},
    Rule{"temporal_self", "self-attention"},
    Rule{"enc_score_head", "query selection"},
    Rule{"enc_bbox_head", "query selection"},
    Rule{"enc_output", "query selection"},
    Rule{"query_pos_head", "position of the queries"},
    Rule{"class_embed", "class head"},
    Rule{"dec_score_head", "class head"},
    Rule{"bbox_embed", "box head"},
    Rule{"bbox_head", "box head"},
    Rule{"postprocess", "post-processing"},
    Rule{"post_process", "post-processing"},
    Rule{"/mlp", "feed-forward"},
    Rule{"/ffn", "feed-forward"},
};

// Nodes within this many steps count as around.
constexpr int kNear = 3;

// Whether a node of which `is` holds lies within kNear steps behind `node`.
template <typename Is>
bool near_behind(const GraphIndex& index, int node, const Is& is) {
  std::set<int> front = {node}, seen = front;
  for (int step = 0; step < kNear && !front.empty(); ++step) {
    std::set<int> next;
    for (const int n : front)
      for (const std::string& output : index.graph().node(n).output())
        for (const Use& use : index.uses(output)) {
          if (is(index.graph().node(use.node))) return true;
          if (seen.insert(use.node).second) next.insert(use.node);
        }
    front = std::move(next);
  }
  return false;
}

// Whether a node's name goes on from `scope` with `child`.
bool has_child(const GraphIndex& index, const std::string& scope, std::string_view child) {
  const std::string wanted = scope + std::string(child);
  return std::any_of(index.graph().node().begin(), index.graph().node().end(),
                     [&](const onnx::NodeProto& node) { return node.name().starts_with(wanted); });
}

std::string structure_around(const GraphIndex& index, int node) {
  const onnx::NodeProto& own = index.graph().node(node);
  const std::string& op = own.op_type();
  if (is_selection(own) || near_behind(index, node, is_selection)) return "query selection";
  const auto samples = [](const onnx::NodeProto& other) {
    return other.op_type() == "GridSample" || other.op_type() == "MSDeformAttn";
  };
  if (samples(own) || near_behind(index, node, samples)) return "cross-attention";
  const auto divides = [](const onnx::NodeProto& other) { return other.op_type() == "Softmax"; };
  if (op == "Softmax" || (op == "MatMul" && near_behind(index, node, divides))) return "attention";
  if (op == "LayerNormalization") return "LayerNorm";
  return "";
}

}  // namespace

BlockName block_name(const GraphIndex& index, int node) {
  BlockName out;
  const std::string& name = index.graph().node(node).name();
  if (const auto slash = name.rfind('/'); slash != std::string::npos && slash > 0)
    out.scope = name.substr(0, slash);
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Rule& rule : kRules) {
    if (lower.find(rule.part) == std::string::npos) continue;
    out.title = rule.title;
    if (rule.part == "/mlp" && has_child(index, out.scope, "/down_proj")) out.title = "SwiGLU";
    return out;
  }
  out.title = structure_around(index, node);
  return out;
}

std::string to_string(const BlockName& name) {
  if (name.title.empty() && name.scope.empty()) return "";
  if (name.scope.empty()) return name.title;
  if (name.title.empty()) return fmt::format("'{}'", name.scope);
  return fmt::format("{}, '{}'", name.title, name.scope);
}

}  // namespace tenonnx
