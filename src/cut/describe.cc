// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "cut/describe.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "cut/data_flow.h"
#include "cut/sites.h"
#include "model/selects.h"

namespace tenonnx {
namespace {

// The root of a mean, with or without an epsilon: what a LayerNormalization or RMSNormalization
// that was written out has once.
bool is_root_of_mean(const DataFlow& flow, int n) {
  const auto made_by = [&](int node) {
    const TensorIds& inputs = flow.inputs(node);
    return inputs.size() == 1 ? flow.producer(inputs[0]) : -1;
  };
  if (flow.node(n).op_type() != "Sqrt") return false;
  int before = made_by(n);
  if (before >= 0 && flow.node(before).op_type() == "Add") before = made_by(before);
  return before >= 0 && flow.node(before).op_type() == "ReduceMean";
}

}  // namespace

CutDescription describe_cut(const DataFlow& flow, const std::vector<SamplingSite>& sites,
                            const TensorInfos& infos, const std::vector<std::string>& cut,
                            const Sides& sides) {
  CutDescription out;
  for (const std::string& name : cut) {
    TensorInfo info;
    if (const auto found = infos.find(name); found != infos.end())
      info = found->second;
    else
      info.has_rank = false;
    info.name = name;
    const std::int64_t count = info.has_rank ? element_count(info.shape) : -1;
    const bool known = count >= 0 && size_of(info.dtype) > 0 && out.elements >= 0;
    out.elements = known ? out.elements + count : -1;
    out.bytes = known ? out.bytes + count * static_cast<std::int64_t>(size_of(info.dtype)) : -1;
    out.tensors.push_back(std::move(info));
  }
  const auto count = [](const std::vector<bool>& nodes) {
    return static_cast<std::size_t>(std::count(nodes.begin(), nodes.end(), true));
  };
  out.nodes_before = count(sides.before);
  out.nodes_behind = count(sides.behind);
  for (const SamplingSite& site : sites)
    out.sampling_behind += sides.behind[static_cast<std::size_t>(site.node)] ? 1 : 0;
  for (const int n : flow.nodes()) {
    if (!sides.behind[static_cast<std::size_t>(n)]) continue;
    const onnx::NodeProto& node = flow.node(n);
    out.selections_behind += static_cast<std::size_t>(count_nodes(node, is_selection));
    out.normalizations_behind += static_cast<std::size_t>(count_nodes(node, is_normalization));
    out.normalizations_behind += is_root_of_mean(flow, n) ? 1 : 0;
    out.layers_behind += static_cast<std::size_t>(count_nodes(node, is_layer));
  }
  return out;
}

}  // namespace tenonnx
