// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a pass that looks for a pattern is built on: it offers every node of the main graph to a
// rule, sweep after sweep, until a sweep changes nothing. Reading sees the graph as it was when the
// sweep began; changes take effect at its end, and two changes of one sweep never touch the same
// node. Bodies of If/Loop/Scan are left as they are (fold_constants inlines constant Ifs), but what
// they capture counts as a use.
//
//   Rewriter r(model);
//   TENONNX_RETURN_IF_ERROR(r.run([&](int i) {
//     const onnx::NodeProto& node = r.node(i);
//     if (!is_op(node, "Pow") || r.scalar(node.input(1)) != 2.0) return;
//     if (r.dtype(node.input(0)) != DType::kFloat32) return r.refuse(i, "not float32");
//     if (!r.begin({i})) return;
//     r.insert(i, make_node("Mul", {node.input(0), node.input(0)}, {node.output(0)}));
//     r.remove(i);
//     r.apply(i, "x^2 becomes x * x");
//   }));
//   return r.finish();
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/graph.h"
#include "model/model.h"
#include "passes/edit.h"
#include "passes/graph_facts.h"
#include "passes/runner.h"

namespace tenonnx {

class Rewriter {
 public:
  explicit Rewriter(Model& model);

  // Internal where the sweeps do not end (a pass that undoes its own work).
  Status run(const std::function<void(int node)>& rule);
  // Removes nodes and initializers that the changes left without a use, and gives the outcome.
  PassOutcome finish();

  // ---- Reading. Indices are of the main graph's nodes in this sweep.
  int size() const { return model_.proto().graph().node_size(); }
  const onnx::NodeProto& node(int index) const { return model_.proto().graph().node(index); }
  std::int64_t opset() const { return model_.opset(); }
  const GraphIndex& index() const { return *facts_.index; }
  // The node that makes a tensor; -1 for inputs, initializers and unknown names.
  int producer(std::string_view name) const;
  // The same where that node is of ai.onnx and of this type, else -1.
  int producer(std::string_view name, std::string_view op_type) const;
  // How often a tensor is used: by nodes, by their bodies, as an output of the graph.
  std::size_t use_count(std::string_view name) const;
  // The node that alone uses a tensor, as an input of its own; else -1.
  int sole_user(std::string_view name) const;
  bool is_graph_output(std::string_view name) const;
  // The value of an initializer that no input overrides, or of a Constant node; else nullptr. Of
  // what Tensor cannot hold, nullptr. Valid to the end of the sweep.
  const Tensor* constant(std::string_view name) const;
  // Its one element, where it has exactly one (of any rank), as double.
  std::optional<double> scalar(std::string_view name) const;
  // Its elements as int64, where it is of an integer dtype.
  std::optional<std::vector<std::int64_t>> integers(std::string_view name) const;
  // Type and shape as onnx infers them; nullptr where nothing is known.
  const InferredType* type(std::string_view name) const;
  DType dtype(std::string_view name) const;                 // kUndefined where it is not known
  std::optional<Shape> shape(std::string_view name) const;  // where the rank is known; -1 inside
  std::optional<Shape> static_shape(std::string_view name) const;  // where every dimension is known

  // ---- Changing. begin(), then any of the five, then apply(); without apply() nothing happens.
  // Begins a change that rests on these nodes (-1 is passed over). False where another change of
  // this sweep has one of them: return then, the next sweep offers the node again.
  bool begin(const std::vector<int>& nodes);
  // A new tensor's name that occurs nowhere: `base`, else base_1, ...
  std::string fresh(std::string_view base);
  // A new node right before node `at` of this sweep. One without a name gets one after the node at
  // `at`.
  void insert(int at, onnx::NodeProto node);
  // A new initializer; returns its name, `base` or base_1, ...
  std::string add_constant(std::string_view base, const Tensor& value);
  void remove(int node);
  // Puts another node in the place of node `index`.
  void replace(int index, onnx::NodeProto node);
  // Every use of `from` reads `to`, bodies included. Where `from` is an output of the graph, `to`
  // takes the name `from` instead; false where it cannot (it is an input, an initializer or an
  // output itself, or another change of this sweep has its producer): nothing is changed then.
  bool alias(std::string_view from, std::string_view to);
  // The change is made; `node` and `what` stand in the outcome.
  void apply(int node, std::string_view what);

  // Not changed here, and why. Counts only if the last sweep still finds it.
  void refuse(int node, std::string_view reason);
  // For passes that change the dtype or shape of a tensor that keeps its name.
  void forget_types() { facts_.inference.reset(); }

 private:
  struct Change {
    std::vector<int> claims, removed;
    std::vector<std::pair<int, onnx::NodeProto>> inserted;
    std::vector<onnx::TensorProto> initializers;
    std::vector<std::pair<std::string, std::string>> aliases;  // from -> to
    std::vector<std::pair<std::string, std::string>> renames;  // of outputs: old -> new
  };
  void begin_sweep();
  Status end_sweep();
  // Names that a change has taken away stay taken: they must not come back for another value.
  std::string make_name(std::string_view base);
  void drop_gone_names();
  const Inference& inference() const;

  Model& model_;
  mutable GraphFacts facts_;  // the index is of this sweep; names are made with the first change
  Change open_, sweep_;
  std::unordered_set<int> claimed_;
  std::unordered_set<std::string> fresh_;  // by make_name()
  int applied_in_sweep_ = 0;
  PassOutcome outcome_;
  mutable std::unordered_map<std::string, std::optional<Tensor>> constants_;
};

}  // namespace tenonnx
