// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which nodes of a graph the provider takes, by the rules of the device file.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <vector>

#include "options.h"
#include "partition.h"

namespace tenonnx::simnpu {

struct Claims {
  std::vector<Ort::ConstNode> nodes;    // of the graph, in topological order
  std::vector<PartitionNode> to_group;  // the same nodes
  std::vector<int> contexts;            // of these, EPContext nodes of this provider
};

// Node by node. A node of the operator `relabel` is taken whatever the rules say.
Claims claim(const Ort::ConstGraph& graph, const Settings& settings);

}  // namespace tenonnx::simnpu
