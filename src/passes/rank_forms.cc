// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/rank_forms.h"

#include <algorithm>
#include <cstring>

namespace tenonnx {
namespace {

// Dimensions larger than 1, with the elements behind each.
std::vector<std::pair<std::int64_t, std::int64_t>> large_dimensions(const Shape& shape) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) dims.emplace_back(shape[i], elements_behind(shape, i));
  return dims;
}

}  // namespace

std::int64_t elements_behind(const Shape& shape, std::size_t axis) {
  std::int64_t product = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) product *= shape[i];
  return product;
}

Cuts all_cuts(const Shape& shape) {
  Cuts cuts;
  for (const auto& [size, behind] : large_dimensions(shape)) cuts.insert(behind);
  cuts.erase(1);
  return cuts;
}

Shape form_of(std::int64_t elements, const Cuts& cuts) {
  Shape form;
  std::int64_t rest = elements;
  for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) {
    form.push_back(rest / *cut);
    rest = *cut;
  }
  form.push_back(rest);
  return form;
}

bool is_form(const Shape& form, const Shape& shape, const Cuts& cuts) {
  if (element_count(form) != element_count(shape)) return false;
  const Cuts kept = all_cuts(form), all = all_cuts(shape);
  return std::includes(all.begin(), all.end(), kept.begin(), kept.end()) &&
         std::includes(kept.begin(), kept.end(), cuts.begin(), cuts.end());
}

void isolate(const Shape& shape, std::size_t axis, Cuts& cuts) {
  const std::int64_t behind = elements_behind(shape, axis);
  if (behind > 1) cuts.insert(behind);
  if (behind * shape[axis] < element_count(shape)) cuts.insert(behind * shape[axis]);
}

std::optional<std::size_t> dimension_of(const Shape& form, const Shape& shape, std::size_t axis) {
  const std::int64_t behind = elements_behind(shape, axis);
  for (std::size_t i = 0; i < form.size(); ++i)
    if (form[i] == shape[axis] && elements_behind(form, i) == behind) return i;
  return std::nullopt;
}

std::vector<bool> broadcast_flags(const Shape& input, const Shape& output) {
  std::vector<bool> flags;
  for (std::size_t i = 0; i < output.size(); ++i) {
    if (output[i] == 1) continue;
    const std::size_t missing = output.size() - input.size();
    flags.push_back(i >= missing && input[i - missing] != 1);
  }
  return flags;
}

Cuts flag_cuts(const std::vector<bool>& flags, const Shape& output) {
  Cuts cuts;
  const auto dims = large_dimensions(output);
  for (std::size_t i = 0; i + 1 < flags.size(); ++i)
    if (flags[i] != flags[i + 1]) cuts.insert(dims[i].second);
  return cuts;
}

Shape operand_form(const std::vector<bool>& flags, const Shape& output, const Shape& form) {
  const auto dims = large_dimensions(output);
  Shape operand;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const std::int64_t behind = elements_behind(form, i);
    bool full = false;
    // The last of the dimensions that form[i] merges.
    for (std::size_t k = 0; k < dims.size(); ++k)
      if (dims[k].second == behind && form[i] != 1) full = flags[k];
    if (operand.empty() && !full) continue;
    operand.push_back(full ? form[i] : 1);
  }
  if (operand.empty()) operand.push_back(1);
  return operand;
}

Tensor broadcast_to(const Tensor& tensor, const Shape& shape) {
  Tensor out(tensor.dtype(), shape);
  const std::size_t size = size_of(tensor.dtype());
  const std::size_t rank = shape.size(), missing = rank - tensor.shape().size();
  const auto* from = static_cast<const char*>(tensor.raw());
  auto* to = static_cast<char*>(out.mutable_raw());
  std::vector<std::int64_t> index(rank, 0);
  for (std::int64_t i = 0; i < out.size(); ++i) {
    std::int64_t at = 0;
    for (std::size_t d = missing; d < rank; ++d) {
      const std::int64_t dim = tensor.shape()[d - missing];
      at = at * dim + (dim == 1 ? 0 : index[d]);
    }
    std::memcpy(to + static_cast<std::size_t>(i) * size, from + static_cast<std::size_t>(at) * size,
                size);
    for (std::size_t d = rank; d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace tenonnx
