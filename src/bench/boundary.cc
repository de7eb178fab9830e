// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "bench/boundary.h"

#include <cstring>
#include <map>
#include <utility>

namespace tenonnx {

std::vector<Boundary> boundaries_of(const Manifest& manifest) {
  std::map<std::string, std::size_t> made_by;
  std::map<std::pair<std::size_t, std::size_t>, Boundary> found;
  for (std::size_t to = 0; to < manifest.segments.size(); ++to) {
    for (const TensorInfo& input : manifest.segments[to].inputs) {
      const auto maker = made_by.find(input.name);
      if (maker == made_by.end()) continue;
      Boundary& boundary = found[{maker->second, to}];
      boundary.from = maker->second;
      boundary.to = to;
      boundary.tensors.push_back(input.name);
    }
    for (const TensorInfo& output : manifest.segments[to].outputs) made_by[output.name] = to;
  }
  std::vector<Boundary> list;
  for (auto& [ends, boundary] : found) list.push_back(std::move(boundary));
  return list;
}

BoundaryCopy::BoundaryCopy(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  for (const Tensor& tensor : tensors_) {
    copies_.push_back(tensor.clone());
    bytes_ += tensor.bytes();
  }
}

void BoundaryCopy::copy() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].bytes() > 0)
      std::memcpy(copies_[i].mutable_raw(), tensors_[i].raw(), tensors_[i].bytes());
  }
}

}  // namespace tenonnx
