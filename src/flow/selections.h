// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Where a graph selects (TopK, ArgMax, ArgMin, NonMaxSuppression), what lies behind, and the same
// graph with the selection taken from outside.
//
// Behind a selection row i of one side says nothing about row i of the other. So the reference is
// run again with the indices that the candidate chose: both then have the same rows in the same
// order, whatever the operators behind do with them, and their values can be compared. Whether the
// candidate chose rightly is a question of its own, to the scores (metrics/selection.h).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "metrics/selection.h"
#include "metrics/suppression.h"
#include "model/graph.h"
#include "model/model.h"

namespace tenonnx {

struct Selection {
  std::string label;  // "TopK '/decoder/TopK'"
  std::string op_type;
  // What is chosen from; "" where it cannot be judged: a NonMaxSuppression whose limits are
  // computed.
  std::string scores;
  std::string values;   // TopK's first output, "" where nothing uses it
  std::string indices;  // what was chosen
  SelectionSpec spec;
  std::string boxes;  // of NonMaxSuppression, beside the scores
  std::optional<SuppressionSpec> suppression;
  int node = -1;  // index in the graph
};

// Those of the main graph whose indices something uses, in node order. (A TopK of which only the
// sorted values are used is as continuous as a maximum.)
std::vector<Selection> find_selections(const Model& model, const GraphIndex& index);

// For every tensor that a selection's results reach: which ones, by position in `selections`. Their
// own results included.
using Behind = std::unordered_map<std::string, std::set<int>>;
Behind behind_selections(const GraphIndex& index, const std::vector<Selection>& selections);

// The model with the indices of the named selections as graph inputs: a TopK becomes
// GatherElements(scores, indices) where its values are used, the others go. Inputs are appended in
// the order of `which`. Unsupported below opset 11, which has no GatherElements.
Result<Model> force_selections(const Model& model, const std::vector<Selection>& selections,
                               const std::set<int>& which);

}  // namespace tenonnx
