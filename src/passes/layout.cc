// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "model/graph.h"
#include "passes/constants.h"

namespace tenonnx {

bool is_reshape_like(const onnx::NodeProto& node) {
  return is_op(node, "Reshape") || is_op(node, "Flatten") || is_op(node, "Squeeze") ||
         is_op(node, "Unsqueeze");
}

std::optional<Permutation> permutation(const Rewriter& r, const onnx::NodeProto& node) {
  if (!is_op(node, "Transpose")) return std::nullopt;
  if (find_attribute(node, "perm") != nullptr) return attribute_ints(node, "perm");
  const auto shape = r.shape(node.input(0));
  if (!shape) return std::nullopt;
  Permutation reversed(shape->size());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return reversed;
}

bool is_identity(const Permutation& perm) {
  for (std::size_t k = 0; k < perm.size(); ++k)
    if (perm[k] != static_cast<std::int64_t>(k)) return false;
  return true;
}

Permutation inverse(const Permutation& perm) {
  Permutation result(perm.size());
  for (std::size_t k = 0; k < perm.size(); ++k)
    result[static_cast<std::size_t>(perm[k])] = static_cast<std::int64_t>(k);
  return result;
}

Permutation composed(const Permutation& first, const Permutation& second) {
  Permutation result(second.size());
  for (std::size_t k = 0; k < second.size(); ++k)
    result[k] = first[static_cast<std::size_t>(second[k])];
  return result;
}

Tensor transposed(const Tensor& tensor, const Permutation& perm) {
  const std::size_t rank = perm.size();
  std::vector<std::int64_t> strides(rank, 1);  // of the input, in elements
  for (std::size_t k = rank; k-- > 1;) strides[k - 1] = strides[k] * tensor.shape()[k];
  Shape shape(rank);
  std::vector<std::int64_t> steps(rank);
  for (std::size_t k = 0; k < rank; ++k) {
    shape[k] = tensor.shape()[static_cast<std::size_t>(perm[k])];
    steps[k] = strides[static_cast<std::size_t>(perm[k])];
  }
  Tensor result(tensor.dtype(), shape);
  const std::size_t width = size_of(tensor.dtype());
  const auto* from = static_cast<const char*>(tensor.raw());
  auto* to = static_cast<char*>(result.mutable_raw());
  std::vector<std::int64_t> at(rank, 0);
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < result.size(); ++i) {
    std::memcpy(to + static_cast<std::size_t>(i) * width,
                from + static_cast<std::size_t>(offset) * width, width);
    for (std::size_t k = rank; k-- > 0;) {
      offset += steps[k];
      if (++at[k] < shape[k]) break;
      offset -= steps[k] * shape[k];
      at[k] = 0;
    }
  }
  return result;
}

std::optional<Tensor> reshape_target(const std::optional<Shape>& shape) {
  if (!shape) return std::nullopt;
  if (std::count(shape->begin(), shape->end(), 0) > 0) return std::nullopt;
  if (std::count_if(shape->begin(), shape->end(), [](auto d) { return d < 0; }) > 1)
    return std::nullopt;
  return int64_vector(*shape);
}

std::optional<std::vector<std::int64_t>> ints_of(const Rewriter& r, const onnx::NodeProto& node,
                                                 std::string_view attribute, int input) {
  if (find_attribute(node, attribute) != nullptr) return attribute_ints(node, attribute);
  if (node.input_size() <= input || node.input(input).empty()) return std::nullopt;
  return r.integers(node.input(input));
}

}  // namespace tenonnx
