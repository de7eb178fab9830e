// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Faults that are planted to see whether `locate` finds them: what devices, compilers and exporters
// are known to do wrong, each as a change of the node that makes one tensor.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "model/graph.h"
#include "model/model.h"
#include "model/shapes.h"
#include "numerics/fault_kind.h"
#include "ort/executor.h"

namespace tenonnx::planted {

using Random = std::mt19937_64;

// What is asked of the reference before a fault is drawn.
struct Facts {
  explicit Facts(const Model& of) : model(of), index(of.proto().graph()), infos(infer_shapes(of)) {}
  const onnx::NodeProto& node(int n) const;
  // Of a tensor with static dimensions, else empty.
  Shape shape(const std::string& tensor) const;
  bool is_float(const std::string& tensor) const;
  // Follows from the model's inputs.
  bool is_computed(const std::string& tensor) const { return computed.contains(tensor); }
  void find_computed();

  const Model& model;
  const GraphIndex index;
  const TensorInfos infos;
  std::set<std::string> computed;
};

// A fault at one node of one graph.
struct Fault {
  std::string text;             // "epsilon 0.1 instead of 1e-05"
  bool removes_tensor = false;  // a candidate's graph does not have the node's tensor any more
  // Changes the model; `node` makes the tensor. What the node makes keeps its name, except where it
  // is removed.
  std::function<void(Model&, int node)> change;
};

// Kinds that cannot be told apart from outside have the same names in `named`: any of them counts.
struct FaultClass {
  const char* name;
  std::set<FaultKind> named;
  const char* why;  // these kinds
  std::function<bool(const Facts&, int node)> eligible;
  std::function<Fault(const Facts&, int node, Random&)> draw;
};
const std::vector<FaultClass>& fault_classes();
// The kind without a site: an executor that is the reference.
inline constexpr const char* kCopyOfReference = "copy of the reference";

// `fault` in the node that makes `tensor`, wherever it is in a graph or a part of one.
void plant(Model& model, const std::string& tensor, const Fault& fault);

// Loads what `inner` loads, with the fault in it. A part of the graph without the node is right.
std::unique_ptr<Executor> make_faulty(std::unique_ptr<Executor> inner, std::string tensor,
                                      Fault fault);
// Says that it is `address`, and is the cpu.
std::unique_ptr<Executor> make_copy(std::string address, bool optimised);

}  // namespace tenonnx::planted
