// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Multi-scale deformable attention as exporters write it: one GridSample a level, the samples of
// all levels side by side, times the attention weights, summed over the points. What lies between
// (Reshape, Transpose, Slice, Split, Gather, ...) is followed element by element (strided_view.h),
// so its order, its shapes and all names are free:
//
//   sample_l = GridSample(value_l [N,D,H_l,W_l], 2 * location_l - 1 [N,Q,P_l,2])    [N,D,Q,P_l]
//   output   = ReduceSum(Concat(sample_0, sample_1, ...) * weights)                 [N,D,Q]
//
// with N = batch * heads. Instead of Mul and ReduceSum a MatMul of the samples by a column of
// weights may stand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "passes/rewriter.h"
#include "passes/strided_view.h"

namespace tenonnx {

// One input of the fused operator: of each tensor the elements that its view says, the views joined
// along an axis, then scale * x + shift.
struct MSDeformOperand {
  struct Piece {
    std::string tensor;
    StridedView view;
  };
  std::vector<Piece> pieces;
  int axis = 0;         // along which several pieces are joined
  int cost = 0;         // 0: the tensor as it is, 1: a Reshape, 2: a Transpose, more: several nodes
  bool affine = false;  // locations: x is the grid, -1..1; the location is x / 2 + 1/2
};

// Of GridSamples that stand for discrete sampling (written_sampling.h).
inline constexpr const char* kDiscreteMode = "discrete";

struct MSDeformMatch {
  struct Level {
    int grid_sample = -1;
    std::int64_t height = 0, width = 0, points = 0;
  };
  std::vector<Level> levels;
  bool discrete = false;  // the mode of all GridSamples is kDiscreteMode
  std::int64_t batch = 0, queries = 0, heads = 0, channels = 0;
  MSDeformOperand value;      // [batch, pixels of all levels, heads * channels]
  MSDeformOperand locations;  // [batch, queries, heads, points, 2]
  MSDeformOperand weights;    // [batch, queries, heads, points]
  std::string output;         // the tensor that the operator's result becomes
  StridedView output_view;    // of [batch, queries, heads * channels]
  int last = -1;              // the node that makes it
  std::vector<int> nodes;     // GridSamples and all after them that go

  std::int64_t points() const;
  std::int64_t pixels() const;
};

// Why a GridSample is not one of such a group, and the node that is to blame.
struct MSDeformMiss {
  int node = -1;
  std::string reason;
};

// Of the group whose first level is node `index`. Nothing in either where another GridSample is the
// first of the group.
struct MSDeformFinding {
  std::optional<MSDeformMatch> match;
  std::optional<MSDeformMiss> miss;
};
MSDeformFinding find_ms_deform_attn(const Rewriter& r, int index);

}  // namespace tenonnx
