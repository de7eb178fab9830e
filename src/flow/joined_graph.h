// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A graph with parts of another one in it, on its own tensors, and with comparisons of what they
// give: all of it in one run, where a tensor is compared as soon as it is there and then freed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/graph.h"
#include "model/model.h"

namespace onnx {
class ModelProto;
class NodeProto;
}  // namespace onnx

namespace tenonnx {

class JoinedGraph {
 public:
  explicit JoinedGraph(const Model& model);
  ~JoinedGraph();

  // Makes a tensor of the graph an output, unless it is one.
  void give(const std::string& tensor);
  // The name of an output that holds the shape of a tensor of the graph.
  std::string give_shape(const std::string& tensor);
  // The tensor of the first `count` along an axis.
  std::string first(const std::string& tensor, std::int64_t axis, std::int64_t count);
  // Adds the nodes and constants of `part` under new names; `tensor_of` an input of it is what it
  // takes. Returns the names here of its outputs. The opsets are those of the graph.
  std::map<std::string, std::string> add(
      const Model& part, const std::function<const std::string&(const std::string&)>& tensor_of);
  // Tensors a against b, one by one, by adapters/differing_op.h, whose listener gets a, b and
  // `more` where they differ. Returns the name of an output: the count of elements that do. `when`:
  // tensors of the graph after which all of these can be there.
  struct Comparison {
    std::int64_t part = 0;
    std::vector<std::string> a, b, more, when;
  };
  std::string compare(const Comparison& comparison);

  // The name of an output: how many of these tensors of the graph may overflow (differing_op.h).
  std::string beyond(const std::vector<std::string>& tensors);

  // Ends it. To be loaded by make_proof_executor().
  Model finish();

 private:
  std::string add_node(onnx::NodeProto node);
  std::string add_last(onnx::NodeProto node, const std::vector<std::string>& when);
  const Model& model_;
  const GraphIndex index_;
  std::unique_ptr<onnx::ModelProto> proto_;
  UniqueNames fresh_;
  std::set<std::string> given_;
  std::multimap<int, onnx::NodeProto> last_;  // nodes that nothing uses, by the node before them
  Model parts_;                               // keeps their weights
};

}  // namespace tenonnx
