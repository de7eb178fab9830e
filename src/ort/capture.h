// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Looking inside a graph: its tensors, taken as added outputs in windows, so that a model that
// makes gigabytes of tensors is looked at within a stated memory. Tensors of the main graph; those
// inside If/Loop bodies are not seen. Added outputs change what a compiler fuses: whoever reports
// values that were taken this way says so.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/graph.h"
#include "ort/executor.h"

namespace tenonnx {

// A tensor that a node of the main graph makes and something uses.
struct ComputedTensor {
  std::string name;
  int node = -1;           // index among the graph's nodes
  TensorInfo info;         // -1 marks a dynamic dimension
  std::int64_t bytes = 0;  // an estimate where a dimension is dynamic: 1 MiB
};

// In the order of the nodes, which is topological. `index` is of the model's graph. Outputs of
// Constant nodes are left out, and tensors whose dtype is not known.
std::vector<ComputedTensor> computed_tensors(const Model& model, const GraphIndex& index);

// [begin, end) of consecutive windows of at most `limit` bytes each; a tensor that is larger than
// the limit has a window of its own.
struct Window {
  std::size_t begin = 0, end = 0;
};
std::vector<Window> plan_windows(std::span<const std::int64_t> bytes, std::int64_t limit);

// `model` with the named tensors as its only outputs, loaded. The inputs are the model's.
Result<std::unique_ptr<LoadedGraph>> load_with_outputs(const Executor& executor, const Model& model,
                                                       const std::vector<std::string>& outputs,
                                                       const LoadOptions& options);

// What an extracted model of this kind takes of `inputs`: those that it has.
TensorMap inputs_of(const LoadedGraph& graph, const TensorMap& inputs);

}  // namespace tenonnx
