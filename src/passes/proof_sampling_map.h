// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// How the elements of a tensor inside a region follow from those of one of its inputs, found by
// running the region: each element of the tensor as scale * (one element of the input) + offset.
// That holds behind whatever moves elements (Reshape, Transpose, Slice, Concat, ...) and behind
// sums and products with what stays the same (2 x - 1, reference + offset / size). With it made
// coordinates and made images go in at the input, however far before the sampling node that lies.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

struct ElementMap {
  std::vector<std::int64_t> from;     // of each element: that of the input, or -1
  std::vector<double> scale, offset;  // of each element
  std::int64_t mapped = 0;            // elements with a source
  bool complete() const {
    return !from.empty() && mapped == static_cast<std::int64_t>(from.size());
  }
  // Every element is one of the input, as it is.
  bool moves() const;
  static ElementMap identity(std::int64_t size);
};

// Values for the inputs of the region -> all of `targets`.
using RunTargets = std::function<Result<TensorMap>(const TensorMap& inputs)>;

// The maps of all targets, each named once, from `input`, which is floating; the other inputs keep
// `values`. An element that depends on more than one element of the input, or not linearly, has no
// source.
Result<std::map<std::string, ElementMap>> find_maps(const RunTargets& run, const TensorMap& values,
                                                    const std::string& input,
                                                    const std::vector<std::string>& targets);

std::vector<double> to_doubles(const Tensor& tensor);
// Rounded to the dtype, clamped to what is finite in it.
Tensor finite_tensor(DType dtype, const Shape& shape, const std::vector<double>& values);

}  // namespace tenonnx
