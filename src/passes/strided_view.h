// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Where the elements of a moved tensor lie in the tensor that they come from, without moving any:
// each axis is a list of modes (size, stride), outer first, so that what Reshape, Transpose, Slice
// and the like do in a row is known exactly, however it is written. [2,300,8,12] in memory, with
// its axes 1 and 2 swapped and then [16,300,12], is
//
//   {(2, 28800), (8, 12)}, {(300, 96)}, {(12, 1)}
//
// Sizes are at least 1. Source of the idea: nested layouts, as CuTe has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

struct StrideMode {
  std::int64_t size = 1, stride = 0;
  bool operator==(const StrideMode&) const = default;
};

// Neighbours that are one run become one mode; modes of size 1 go. Of one element: empty.
std::vector<StrideMode> coalesced(const std::vector<StrideMode>& modes);

class StridedView {
 public:
  StridedView() = default;
  // All of a tensor of this shape, in its order; every dimension at least 1.
  static StridedView of(const Shape& shape);
  static StridedView from_axes(std::int64_t offset, std::vector<std::vector<StrideMode>> axes);

  std::int64_t offset() const { return offset_; }
  std::size_t rank() const { return axes_.size(); }
  const std::vector<StrideMode>& axis(std::size_t i) const { return axes_[i]; }
  std::int64_t dimension(std::size_t i) const;
  Shape shape() const;

  // Each gives false, and leaves the view as it is, where modes cannot say the result.
  bool reshape(const Shape& shape);
  bool transpose(const std::vector<std::int64_t>& perm);
  bool slice(std::size_t axis, std::int64_t start, std::int64_t length, std::int64_t step);
  // With NumPy's rules; a repeated dimension has stride 0.
  bool broadcast(const Shape& shape);
  bool erase_axis(std::size_t axis);

  // The modes of all axes in a row, coalesced: two views with the same run and offset hold the same
  // elements in the same order, whatever their shapes.
  std::vector<StrideMode> run() const;
  bool same_order(const StridedView& other) const;
  // Elements 0, 1, 2, ... of the tensor.
  bool is_whole(std::int64_t size) const;

  // Views of the same tensor, one after another along an axis; nullopt where modes cannot say it.
  static std::optional<StridedView> joined(const std::vector<StridedView>& parts, std::size_t axis);

 private:
  std::int64_t offset_ = 0;
  std::vector<std::vector<StrideMode>> axes_;
};

// How a view that holds every element of its tensor once is made of it: Reshape to `split`,
// Transpose by `perm`, Reshape to the view's shape. nullopt where it holds not all, or some twice.
struct Rearrangement {
  Shape split;
  std::vector<std::int64_t> perm;
};
std::optional<Rearrangement> rearrangement(const StridedView& view, std::int64_t tensor_size);

}  // namespace tenonnx
