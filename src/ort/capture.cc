// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/capture.h"

#include <onnx/onnx_pb.h>

#include "base/status.h"
#include "model/extract.h"
#include "model/shapes.h"

namespace tenonnx {
namespace {

// What a tensor of unknown shape is counted as.
constexpr std::int64_t kUnknownBytes = 1 << 20;

}  // namespace

std::vector<ComputedTensor> computed_tensors(const Model& model, const GraphIndex& index) {
  const TensorInfos types = infer_shapes(model);
  const onnx::GraphProto& graph = model.proto().graph();
  std::vector<ComputedTensor> tensors;
  for (int i = 0; i < graph.node_size(); ++i) {
    const onnx::NodeProto& node = graph.node(i);
    if (node.op_type() == "Constant") continue;
    for (const std::string& name : node.output()) {
      const auto type = types.find(name);
      if (name.empty() || type == types.end() || type->second.dtype == DType::kUndefined) continue;
      const Value* value = index.find(name);
      if (value == nullptr || (value->uses.empty() && !value->is_output)) continue;
      const TensorInfo& info = type->second;
      const std::int64_t count = info.has_rank ? element_count(info.shape) : -1;
      tensors.push_back(
          {name, i, info,
           count < 0 ? kUnknownBytes : count * static_cast<std::int64_t>(size_of(info.dtype))});
    }
  }
  return tensors;
}

std::vector<Window> plan_windows(std::span<const std::int64_t> bytes, std::int64_t limit) {
  std::vector<Window> windows;
  for (std::size_t begin = 0; begin < bytes.size();) {
    std::size_t end = begin;
    std::int64_t sum = 0;
    while (end < bytes.size() && (end == begin || sum + bytes[end] <= limit)) sum += bytes[end++];
    windows.push_back({begin, end});
    begin = end;
  }
  return windows;
}

Result<std::unique_ptr<LoadedGraph>> load_with_outputs(const Executor& executor, const Model& model,
                                                       const std::vector<std::string>& outputs,
                                                       const LoadOptions& options) {
  std::vector<std::string> inputs;
  for (const TensorInfo& input : model.inputs()) inputs.push_back(input.name);
  TENONNX_ASSIGN_OR_RETURN(const Model part, extract(model, inputs, outputs));
  return executor.load(part, options);
}

TensorMap inputs_of(const LoadedGraph& graph, const TensorMap& inputs) {
  TensorMap out;
  for (const TensorInfo& info : graph.inputs()) {
    const auto given = inputs.find(info.name);
    if (given != inputs.end()) out.emplace(info.name, given->second);
  }
  return out;
}

}  // namespace tenonnx
