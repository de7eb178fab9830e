// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Two graphs in one: the graph after some passes, whole, and beside it every node of the graph before
// them that is not in it, fed with the tensors of the graph after.
//
//   before   a = Relu(x)  s = Shape(a)  t = Slice(s, ..)  b = Reshape(a, t)  y = Conv(b, w)
//   after    a = Relu(x)                                  b = Reshape(a, t)  y = Conv(b, w)
//            with a constant t
//   joint    the graph after, and  s' = Shape(a)  t' = Slice(s', ..); the pair (t', t)
//
// If every pair is equal bit for bit, every tensor that both graphs have is, outputs among them, by
// induction along the graph before: an unchanged node takes equal tensors, and what a changed one
// gives is half of a pair. So one run says of both graphs what two would, if a kernel gives the
// same for the same twice. Nothing is believed of names: a wrong one makes a pair that differs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct JointPair {
  std::string tensor;   // its name before the passes
  std::string was, is;  // outputs of the joint graph: by the nodes before, by those after
};

struct JointGraph {
  // Outputs: those of the graph after, in their order, then what the pairs need.
  Model model;
  std::vector<JointPair> pairs;
  int shared = 0;        // nodes of both graphs, which run once
  int only_before = 0;   // nodes of the graph before that run beside them
};

// `renamed`: tensors of the graph before that have another name now. nullopt where one graph cannot
// hold both: other opsets, functions or IR, or a name of `renamed` that is not there.
Result<std::optional<JointGraph>> join_graphs(const Model& before, const Model& after,
                                              const std::map<std::string, std::string>& renamed);

}  // namespace tenonnx
