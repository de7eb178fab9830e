// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the image's values flow through. A tensor is an index into GraphIndex::values(), so nothing
// here depends on names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/graph.h"
#include "model/model.h"

namespace tenonnx {

using TensorIds = std::vector<int>;
using TensorSet = std::vector<bool>;  // by tensor id

// The part of a main graph that carries the image to an output. Shape and Size end it: they hand
// on no values. Nodes that reach no output are left out. Holds views into the model.
class DataFlow {
 public:
  explicit DataFlow(const Model& model);
  const GraphIndex& index() const { return index_; }
  const onnx::GraphProto& graph() const { return index_.graph(); }
  const onnx::NodeProto& node(int node) const;
  const std::string& name(int tensor) const { return names_[static_cast<std::size_t>(tensor)]; }
  int find(std::string_view name) const;  // -1 where there is no such tensor
  std::size_t tensors() const { return names_.size(); }

  // The graph inputs that are images: those of at least 4 dimensions; all inputs where none has.
  const TensorIds& sources() const { return sources_; }
  bool is_source(int tensor) const { return is_source_[static_cast<std::size_t>(tensor)]; }
  // Nodes on the way from a source to an output, in topological order.
  const std::vector<int>& nodes() const { return nodes_; }
  bool carries(int tensor) const { return carries_[static_cast<std::size_t>(tensor)]; }
  bool is_output(int tensor) const { return is_output_[static_cast<std::size_t>(tensor)]; }
  // Of a node: the tensors of this flow that it reads (captures of its bodies too) and makes, each
  // once.
  const TensorIds& inputs(int node) const { return inputs_[static_cast<std::size_t>(node)]; }
  const TensorIds& outputs(int node) const { return outputs_[static_cast<std::size_t>(node)]; }
  // Of a tensor: the node of this flow that makes it (-1 for a source), and those that read it.
  int producer(int tensor) const { return producers_[static_cast<std::size_t>(tensor)]; }
  const std::vector<int>& readers(int tensor) const {
    return readers_[static_cast<std::size_t>(tensor)];
  }
  // Position `input` of a node as a tensor of this flow; -1 for a constant and one that is absent.
  int input_at(int node, int input) const;

  // The tensors themselves and all that they are made from; not through `stop`.
  TensorSet ancestors(const TensorIds& of, const TensorSet& stop = {}) const;
  // All that is made from the outputs of these nodes, those outputs included.
  TensorSet descendants(const std::vector<int>& nodes) const;
  // The tensors of a set that is closed under ancestors which something outside of it reads: what
  // crosses where the set ends.
  TensorIds frontier(const TensorSet& set) const;

 private:
  GraphIndex index_;
  std::vector<std::string> names_;
  TensorIds sources_;
  TensorSet is_source_, carries_, is_output_;
  std::vector<int> nodes_, producers_;
  std::vector<TensorIds> inputs_, outputs_;
  std::vector<std::vector<int>> readers_;
};

// An operator that ends the flow of values: Shape, Size.
bool hands_on_no_values(const onnx::NodeProto& node);

}  // namespace tenonnx
