// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A model divided by its nodes: those that are kept at the reference and those of a device, as
// segments that run one after the other. Neither needs to be a beginning or an end of the graph.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "model/graph.h"
#include "model/model.h"

namespace tenonnx {

struct NodeSegment {
  bool kept = false;
  std::vector<int> nodes;            // of the main graph, rising
  std::vector<std::string> inputs;   // computed tensors and graph inputs that it takes
  std::vector<std::string> outputs;  // what a later segment of any side or the user takes
};

// The segments in an order in which they can run: as few as a greedy schedule finds (all nodes of
// one side that can run, then all of the other; the side that begins is the one which gives fewer).
// Nodes that follow from constants alone belong to whoever needs them. Empty for a graph that
// computes nothing.
std::vector<NodeSegment> divide_nodes(const GraphIndex& index, const std::set<int>& kept);

// The segment as a model. As extract().
Result<Model> cut_out(const Model& model, const NodeSegment& segment);

// What dividing costs: tensors that cross from one side to the other, each once, graph inputs and
// outputs apart.
struct DivisionPrice {
  std::size_t segments = 0;
  std::size_t tensors = 0;
  std::int64_t bytes = 0;   // of one run, as the graph stores them
  bool bytes_known = true;  // false: a shape is dynamic and not among the bytes
};
DivisionPrice price_of(const Model& model, const GraphIndex& index,
                       const std::vector<NodeSegment>& segments);

// A list of nodes in a file: a name a line (of a node, or of a tensor that it makes); lines that
// begin with '#' and empty ones say nothing, nor do blanks around a name. NotFound with the line
// and near names; InvalidArgument where the file names none.
Result<std::set<int>> read_node_list(const std::filesystem::path& file, const GraphIndex& index);
// The name under which such a list has a node: its own where no other node has it, else that of its
// first output.
std::string listed_name(const GraphIndex& index, int node);
// Such a file's text; `comments`: lines without '#'.
std::string node_list_text(const GraphIndex& index, const std::set<int>& nodes,
                           const std::vector<std::string>& comments);

}  // namespace tenonnx
