// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a pass changed, found by comparing the graphs before and after it: nothing of what the pass
// says is believed except which tensor has another name now, and that is proved like everything
// else.
//
// A node is unchanged where the other graph has one of the same operator, domain, schema version
// and attributes with the same inputs and outputs and the same constants. All others form regions:
// nodes that share a tensor which only one of the two graphs has, and the two producers of one
// tensor. Two regions meet only in tensors that both graphs have, so if every region gives the same
// outputs for the same inputs, the two graphs compute the same (by induction along the graph).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/model.h"

namespace onnx {
class TensorProto;
}  // namespace onnx

namespace tenonnx {

// One value under its names in both graphs.
struct RegionTensor {
  std::string before, after;
  bool in_before = false;  // inputs: the region takes it in the graph before the pass
  bool in_after = false;
};

struct ChangedRegion {
  std::vector<int> before, after;  // nodes of the main graphs, rising
  std::vector<RegionTensor> inputs;
  std::vector<RegionTensor> outputs;  // never empty
};

struct GraphDiff {
  std::vector<ChangedRegion> regions;
  int unchanged = 0;             // nodes
  std::vector<int> counterpart;  // of each node before: the unchanged node after, or -1
};

// Internal names what no pass may do: take away or retype an input or output of the graph, claim a
// rename of or to a tensor that does not exist, rename a constant to one of another value.
Result<GraphDiff> diff_graphs(const Model& before, const Model& after,
                              const std::map<std::string, std::string>& renamed,
                              std::string_view pass);

// Whether two tensors hold the same: dtype, shape, every bit.
bool same_constant(const Model& before, const onnx::TensorProto& a, const Model& after,
                   const onnx::TensorProto& b);

// The region with the unchanged nodes before it: those that make its inputs, and all of a region
// that makes one. False where there are none.
bool grow_region(const Model& before, const Model& after, const GraphDiff& diff,
                 const std::map<std::string, std::string>& renamed, ChangedRegion& region);

}  // namespace tenonnx
