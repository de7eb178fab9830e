// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Whether tensors divide a graph, and into what.
#pragma once

#include <string>
#include <vector>

#include "model/graph.h"

namespace tenonnx {

struct Sides {
  // Nodes that the cut tensors need, and those that the outputs need beyond the cut. Constants
  // that both need are in both.
  std::vector<bool> before, behind;
  std::vector<bool> used;  // by tensor of the cut: whether something behind reads it
  std::vector<std::string> shared_inputs;  // graph inputs that both need
  bool separates() const { return shared_inputs.empty(); }
};

// Shape and Size count as any other node: what split() of module model takes.
Sides sides_of(const GraphIndex& index, const std::vector<std::string>& cut);

}  // namespace tenonnx
