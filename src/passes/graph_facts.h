// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What passes ask of a graph and what takes time to find out: handed on from pass to pass through
// Model::derived() while nobody else changes the graph. Most passes leave most graphs as they are;
// without this the example's 34 passes spent half of their time on making it anew.
#pragma once

#include <optional>

#include "model/graph.h"
#include "model/model.h"
#include "passes/inference.h"

namespace tenonnx {

struct GraphFacts {
  std::optional<GraphIndex> index;  // of the graph as it is
  // Every name that is there or has been: none of the others means anything.
  std::optional<UniqueNames> names;
  // Right for every tensor that it knows and that is still there.
  std::optional<Inference> inference;
  bool exact = false;  // and `inference` knows all that infer() would find in the graph as it is
};

// Takes the facts out of the model: whoever takes them keeps them right and puts them back.
GraphFacts take_facts(Model& model);
// Right until the next mutable_proto().
void keep_facts(Model& model, GraphFacts facts);
// Whether what is inferred is exact, or nothing is: then the next who asks infers.
bool has_exact_types(Model& model);
// Makes it so.
void drop_inexact_types(Model& model);

}  // namespace tenonnx
