// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a graph needs beside its inputs and constants, from shapes alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "model/graph.h"
#include "model/shapes.h"

namespace tenonnx {

struct PeakMemory {
  std::int64_t bytes = 0;  // of all that is alive while the hungriest node runs
  int node = -1;           // that node
};

// Nodes run in their order, each needs what it makes and what is still to be used, and nothing
// shares memory: a bound from above for a runtime that runs them so and reuses what is free, short
// of its own scratch memory. Only tensors that `nodes` (rising) make count. nullopt where the size
// of one is not known.
std::optional<PeakMemory> peak_memory(const GraphIndex& index, const TensorInfos& infos,
                                      std::span<const int> nodes);
// Of the whole main graph.
std::optional<PeakMemory> peak_memory(const Model& model);

}  // namespace tenonnx
