// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What crosses between groups of nodes: partitions of a provider, segments.
#pragma once

#include <string>
#include <vector>

namespace onnx {
class GraphProto;
}  // namespace onnx

namespace tenonnx {

// A tensor that one group makes and others read. Constants cross nowhere.
struct Crossing {
  std::string tensor;
  int from = -1;        // the group that makes it; -1: an input of the graph
  std::vector<int> to;  // the other groups that read it, ascending; empty for an output alone
  bool is_output = false;
};

// `group_of` has an entry for each node of the main graph, 0 or more. In the order in which the
// tensors are made. An output of the graph is listed whoever reads it.
std::vector<Crossing> find_crossings(const onnx::GraphProto& graph,
                                     const std::vector<int>& group_of);

}  // namespace tenonnx
