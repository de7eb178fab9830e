// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Real nodes of a model on their own, with their constants, axes and epsilons: what a fault finder
// runs on a device with the reference's tensors.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/graph.h"
#include "model/model.h"

namespace tenonnx {

struct Piece {
  std::string label;       // "Softmax '/decoder/Softmax'", "block '/decoder/0/mlp'"
  std::vector<int> nodes;  // of the main graph, rising
  std::vector<std::string> inputs, outputs;  // tensors that cross its edge; constants do not
};

struct PieceSelection {
  std::string node;   // a node's name or one of its outputs, or an end that only one node has
  std::string op;     // an operator type: each of its nodes is a piece
  std::string block;  // a prefix of node names up to a '/': all below it are one piece
};

// Pieces in graph order. Exactly one of the three is given. NotFound with near names;
// InvalidArgument where a piece has no input that is computed (a constant: nothing to feed) or the
// selection is empty or double.
Result<std::vector<Piece>> select_pieces(const GraphIndex& index, const PieceSelection& selection);

// The edge of a set of nodes (rising indices).
Piece make_piece(const GraphIndex& index, std::vector<int> nodes, std::string label);

// The nodes that make `tensors`, themselves always, what they read up to tensors that are `there`.
std::set<int> nodes_that_make(const GraphIndex& index, const std::vector<std::string>& tensors,
                              const std::function<bool(std::string_view)>& there);

// The nodes that make `tensor` out of tensors of `shared` (and inputs and constants); its only
// output is `tensor`.
Piece piece_between(const GraphIndex& index, const std::string& tensor,
                    const std::set<std::string, std::less<>>& shared);

// The nodes as a model with the piece's inputs and outputs. As extract().
Result<Model> cut_out(const Model& model, const Piece& piece);

}  // namespace tenonnx
