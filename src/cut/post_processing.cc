// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "cut/post_processing.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "cut/separators.h"
#include "cut/sites.h"

namespace tenonnx {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace

PostProcessing find_post_processing(const DataFlow& flow) {
  PostProcessing out;
  std::vector<int> layers;
  for (const int node : flow.nodes())
    if (count_nodes(flow.node(node), is_layer) > 0) layers.push_back(node);
  const std::vector<int> selections = selection_nodes(flow);
  if (layers.empty() || selections.empty()) {
    out.why_none =
        layers.empty()
            ? "the model has no layer with weights (Conv, MatMul, Gemm, ...)"
            : "the model has neither deformable sampling (GridSample, gathers at computed places) "
              "nor a selection (TopK, NonMaxSuppression, ArgMax), so that no place stands out";
    return out;
  }
  // All that a layer reads or makes; what the last of them make is where they end.
  TensorIds read, made;
  for (const int node : layers) {
    const TensorIds& inputs = flow.inputs(node);
    const TensorIds& outputs = flow.outputs(node);
    read.insert(read.end(), inputs.begin(), inputs.end());
    made.insert(made.end(), outputs.begin(), outputs.end());
  }
  const TensorSet needed = flow.ancestors(read);
  const TensorSet computed = flow.ancestors(made);
  std::vector<int> last;
  for (const int node : selections) {
    const TensorIds& outputs = flow.outputs(node);
    if (std::none_of(outputs.begin(), outputs.end(), [&](int id) { return needed[at(id)]; }))
      last.push_back(node);
  }
  if (last.empty()) {
    out.why_none = "layers with weights lie behind every selection (" +
                   node_label(flow.node(selections.back())) +
                   "), so that it is not post-processing";
    return out;
  }
  out.selection = node_label(flow.node(last[0]));
  const TensorSet selected = flow.descendants(last);
  for (const int id : single_separators(flow)) {
    if (needed[at(id)] || selected[at(id)]) continue;
    out.boundary = {id};
    return out;
  }
  out.boundary = flow.frontier(computed);
  return out;
}

}  // namespace tenonnx
