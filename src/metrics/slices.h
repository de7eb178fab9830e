// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A tensor that mixes kinds hides small ones behind large ones: boxes of 0..640 beside scores of
// 0..1 have a float16 floor of 0.25, in which any score is lost. Such a tensor is compared slice by
// slice along the axis that tells its kinds apart.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

// Neighbouring slices along an axis whose largest magnitudes are of one kind: [0,4) boxes, [4,84)
// scores.
struct SliceGroup {
  std::int64_t begin = 0, end = 0;
  double magnitude = 0;  // the largest of the tensor that was looked at
};

struct MixedTensor {
  int axis = 0;
  std::vector<SliceGroup> groups;  // at least two
};

// Slices are of one kind while the largest magnitude of each is within kMixedRatio of the group's
// largest. 64: a float16 step at the larger is then above 3 % of the smaller (2^-11 * 64).
inline constexpr double kMixedRatio = 64;
// Axes with more slices or groups than these are channels of features, not kinds.
inline constexpr std::int64_t kMostSlices = 256;
inline constexpr std::size_t kMostGroups = 4;

// The axis along which the kinds differ most; nullopt where no axis tells any apart, and for
// integers. Slices that are all zero belong to any kind.
std::optional<MixedTensor> find_mixed(const Tensor& tensor);

// Slices [begin, end) along `axis`, as a tensor of its own (a copy). InvalidArgument outside.
Result<Tensor> slices_of(const Tensor& tensor, int axis, std::int64_t begin, std::int64_t end);

}  // namespace tenonnx
