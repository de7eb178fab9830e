// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What crosses from one segment to another. Segments of one process hand a tensor over without a
// copy; where one of them runs on a device, its runtime copies at least once, which copy() stands
// for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "package/manifest.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct Boundary {
  std::size_t from = 0;  // indices into Manifest::segments
  std::size_t to = 0;
  std::vector<std::string> tensors;
};

// In the order of segments. Of several segments that make a tensor, the last before the reader
// counts.
std::vector<Boundary> boundaries_of(const Manifest& manifest);

// Copies tensors in host memory into buffers of its own, which are allocated and touched first.
class BoundaryCopy {
 public:
  explicit BoundaryCopy(std::vector<Tensor> tensors);
  std::uint64_t bytes() const { return bytes_; }
  void copy();
  // What the last copy() wrote.
  const std::vector<Tensor>& copies() const { return copies_; }

 private:
  std::vector<Tensor> tensors_, copies_;
  std::uint64_t bytes_ = 0;
};

}  // namespace tenonnx
