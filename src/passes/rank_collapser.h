// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The work of collapse_rank: rebuilds a main graph node by node, with forms (rank_forms.h) in place
// of the tensors of too many dimensions.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/graph.h"
#include "model/model.h"
#include "passes/inference.h"
#include "passes/rank_forms.h"
#include "passes/runner.h"

namespace tenonnx {

// A tensor of the old graph as the new one holds it.
struct Held {
  std::string name;
  Shape shape;
};

class RankCollapser {
 public:
  RankCollapser(Model& model, std::size_t max_rank);

  PassOutcome run();

 private:
  using Why = std::string;  // why a node cannot be lowered; "" for done

  std::optional<Shape> shape(const std::string& name) const;
  bool is_high(const std::string& name) const;
  bool touches_high(const onnx::NodeProto& node) const;
  Held held(const std::string& name) const;
  std::optional<Tensor> constant(const std::string& name) const;
  std::optional<std::vector<std::int64_t>> integers(const std::string& name) const;

  // ---- Building.
  std::string add_constant(const std::string& base, const Tensor& value);
  void emit(onnx::NodeProto node);
  std::string reshape(const Held& from, const Shape& to, const std::string& name);
  // The data of `name` in this shape.
  std::string view(const std::string& name, const Shape& to);
  // The name to give to a result that stands for `name` in this shape.
  std::string result_name(const std::string& name, const Shape& as);
  void hold(const std::string& name, const std::string& result, const Shape& as);
  void materialize(const std::string& name);
  // A copy with the name and the attributes of `node`, other inputs and outputs.
  static onnx::NodeProto like(const onnx::NodeProto& node, const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs);

  // ---- Choosing forms.
  bool fits(const Shape& form) const { return form.size() <= max_rank_; }
  std::optional<Shape> choose(const std::string& input, const Shape& of, const Cuts& cuts) const;
  Cuts operand_cuts(const onnx::NodeProto& node) const;
  // For nodes over one axis: the form of `input` in which `axis` is a dimension of its own, and
  // which; or why there is none.
  Why separate(const std::string& input, std::size_t axis, Shape& form,
               std::size_t& dimension) const;
  void find_chains();
  std::string chain_of(const std::string& name);

  // ---- Lowering, an operator each.
  Why lower(const onnx::NodeProto& node);
  Why lower_view(const onnx::NodeProto& node);
  Why lower_elementwise(const onnx::NodeProto& node);
  Why expand_operands(const onnx::NodeProto& node, std::vector<std::string>& inputs, Shape& form);
  Why lower_transpose(const onnx::NodeProto& node);
  Why transpose_in_steps(const onnx::NodeProto& node, const std::vector<std::size_t>& perm,
                         const Cuts& cuts);
  Why lower_softmax(const onnx::NodeProto& node);
  Why lower_reduction(const onnx::NodeProto& node);
  Why lower_slice(const onnx::NodeProto& node);
  Why lower_split(const onnx::NodeProto& node);
  Why lower_concat(const onnx::NodeProto& node);
  Why lower_gather(const onnx::NodeProto& node);
  Why lower_expand(const onnx::NodeProto& node);
  Why lower_tile(const onnx::NodeProto& node);
  Why lower_layer_norm(const onnx::NodeProto& node);

  Model& model_;
  const std::size_t max_rank_;
  // A constant up to this size gets its new shape by being stored again, a larger one by a node.
  static constexpr std::size_t kLargestCopy = 1U << 20U;
  UniqueNames names_;
  InferredTypes types_;
  std::unordered_set<std::string> initializers_;  // and outputs of Constant nodes
  std::unordered_set<std::string> fixed_;  // outputs of the graph, captured by bodies: keep names
  std::unordered_set<std::string> fresh_;  // results that have no name of the old graph
  std::unordered_map<std::string, Held> held_;
  std::map<std::pair<std::string, Shape>, std::string> views_;
  std::unordered_set<std::string> materialized_;
  std::unordered_map<std::string, std::string> final_names_;  // of fresh results
  std::unordered_map<std::string, std::string> chain_;        // union-find over tensors
  std::unordered_map<std::string, Cuts> chain_cuts_;
  std::vector<onnx::NodeProto> nodes_;
  std::vector<onnx::TensorProto> constants_;
  std::string at_;  // the node that is being lowered
  int remaining_ = 0;
  PassOutcome outcome_;
};

}  // namespace tenonnx
