// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The sampling nodes of a region as it was before a pass: GridSample, and MSDeformAttn of domain
// tenonnx where its locations are no offsets.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "tenonnx/base.h"

namespace onnx {
class NodeProto;
}

namespace tenonnx {

// One image that a node samples: a GridSample has one, MSDeformAttn one a level.
struct SampledLevel {
  std::string node;                // its label
  std::string value, coordinates;  // tensors of the graph before the pass
  int level = 0;                   // of this node
  std::vector<std::int64_t> size;  // in pixels: width, height[, depth]
  std::string mode = "linear";     // linear, nearest, cubic
  std::string padding = "zeros";
  bool align_corners = false;
  DType dtype = DType::kUndefined;  // of the coordinates
  // grid = scale * coordinate + offset, -1 to 1
  double scale = 1, offset = 0;
  // Of each point the element of `coordinates` that holds its x; y is the next one.
  std::vector<std::int64_t> points;
  // Of each pixel of one channel (the first one, of every image and head): its element of `value`.
  std::vector<std::int64_t> pixels;
  std::vector<std::array<std::int32_t, 3>> places;  // of each of `pixels`: x, y, z

  double to_pixel(double coordinate, std::size_t axis) const;
  // The coordinate of a position in pixels, as near as the dtype has one.
  double from_pixel(double pixel, std::size_t axis) const;
  // grid_rounding() along the longest axis.
  double rounding(DType dtype) const;
};

bool is_sampling(const onnx::NodeProto& node);

// Nodes of the main graph among `nodes` that sample.
std::vector<int> sampling_nodes(const Model& model, std::span<const int> nodes);
// The tensors that sampled_levels() wants, each once: values and coordinates.
std::vector<std::string> sampling_tensors(const Model& model, std::span<const int> sampling);
// `tensors`: what sampling_tensors() names. A node that cannot be read is left out, with a reason
// in `notes`.
std::vector<SampledLevel> sampled_levels(const Model& model, std::span<const int> sampling,
                                         const TensorMap& tensors, std::vector<std::string>& notes);

}  // namespace tenonnx
