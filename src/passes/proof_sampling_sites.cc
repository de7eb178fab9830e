// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_sampling_sites.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/status.h"
#include "metrics/elements.h"
#include "model/graph.h"
#include "passes/edit.h"
#include "passes/proof_sampling_cases.h"
#include "passes/proof_sampling_map.h"

namespace tenonnx {
namespace {

constexpr std::string_view kOurDomain = "tenonnx";

bool is_deform_attn(const onnx::NodeProto& node) {
  return node.op_type() == "MSDeformAttn" && node.domain() == kOurDomain;
}

bool has_input(const onnx::NodeProto& node, int i) {
  return node.input_size() > i && !node.input(i).empty();
}

const Tensor* find(const TensorMap& tensors, const std::string& name) {
  const auto it = tensors.find(name);
  return it == tensors.end() ? nullptr : &it->second;
}

std::string read_grid_sample(const onnx::NodeProto& node, const TensorMap& tensors,
                             std::vector<SampledLevel>& out) {
  const Tensor* value = find(tensors, node.input(0));
  const Tensor* grid = find(tensors, node.input(1));
  if (value == nullptr || grid == nullptr) return "its tensors were not taken";
  const std::size_t rank = value->shape().size();
  if (rank < 4 || rank > 5 || grid->shape().size() != rank || !is_floating(grid->dtype()))
    return "its shapes are not those of a GridSample";
  SampledLevel level;
  level.node = node_label(node);
  level.value = node.input(0);
  level.coordinates = node.input(1);
  const std::string mode = attribute_or(node, "mode", "linear");
  level.mode = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
  level.padding = attribute_or(node, "padding_mode", "zeros");
  level.align_corners = attribute_or(node, "align_corners", std::int64_t{0}) != 0;
  level.dtype = grid->dtype();
  for (std::size_t a = rank; a-- > 2;) level.size.push_back(value->shape()[a]);
  const auto axes = static_cast<std::int64_t>(rank) - 2;
  if (grid->shape().back() != axes) return "the last dimension of its grid is not that of a point";
  for (std::int64_t e = 0; e < grid->size(); e += axes) level.points.push_back(e);
  std::int64_t pixels = 1;
  for (const std::int64_t n : level.size) pixels *= n;
  for (std::int64_t image = 0; image < value->shape()[0]; ++image) {
    for (std::int64_t p = 0; p < pixels; ++p) {
      level.pixels.push_back(image * value->shape()[1] * pixels + p);
      level.places.push_back(
          {static_cast<std::int32_t>(p % level.size[0]),
           static_cast<std::int32_t>(p / level.size[0] % level.size[1]),
           static_cast<std::int32_t>(axes == 3 ? p / level.size[0] / level.size[1] : 0)});
    }
  }
  out.push_back(std::move(level));
  return "";
}

std::string read_deform_attn(const onnx::NodeProto& node, const TensorMap& tensors,
                             std::vector<SampledLevel>& out) {
  if (has_input(node, 3)) return "its locations are offsets from reference points";
  const Tensor* value = find(tensors, node.input(0));
  const Tensor* locations = find(tensors, node.input(1));
  if (value == nullptr || locations == nullptr) return "its tensors were not taken";
  std::vector<std::int64_t> shapes = attribute_ints(node, "spatial_shapes");
  if (has_input(node, 4)) {
    const Tensor* given = find(tensors, node.input(4));
    if (given == nullptr || given->dtype() != DType::kInt64) return "its levels are not known";
    shapes.assign(given->data<std::int64_t>(), given->data<std::int64_t>() + given->size());
  }
  const std::vector<std::int64_t> points = attribute_ints(node, "points");
  if (points.empty() || shapes.size() != 2 * points.size()) return "its levels are not known";
  if (value->shape().size() < 3 || locations->shape().size() < 5)
    return "its shapes are not those of MSDeformAttn";
  const std::int64_t batch = value->shape()[0], keys = value->shape()[1];
  const std::int64_t heads = locations->shape()[2];
  if (keys == 0 || heads == 0) return "it is empty";
  const std::int64_t head_size = value->size() / (batch * keys * heads);
  std::int64_t all = 0;
  for (const std::int64_t n : points) all += n;
  std::int64_t start = 0, first = 0;
  const std::string mode = attribute_or(node, "mode", "bilinear");
  for (std::size_t l = 0; l < points.size(); ++l) {
    SampledLevel level;
    level.node = node_label(node);
    level.value = node.input(0);
    level.coordinates = node.input(1);
    level.level = static_cast<int>(l);
    level.size = {shapes[2 * l + 1], shapes[2 * l]};
    level.mode = mode == "bilinear" ? "linear" : "nearest";
    level.padding = mode == "discrete" ? "border" : "zeros";
    level.dtype = locations->dtype();
    level.scale = 2;
    level.offset = -1;
    for (std::int64_t e = 0; e < locations->size() / 2; ++e)
      if (const std::int64_t p = e % all; p >= first && p < first + points[l])
        level.points.push_back(2 * e);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t p = 0; p < level.size[0] * level.size[1] && start + p < keys; ++p) {
        for (std::int64_t m = 0; m < heads; ++m) {
          level.pixels.push_back(((b * keys + start + p) * heads + m) * head_size);
          level.places.push_back({static_cast<std::int32_t>(p % level.size[0]),
                                  static_cast<std::int32_t>(p / level.size[0]), 0});
        }
      }
    }
    first += points[l];
    start += level.size[0] * level.size[1];
    out.push_back(std::move(level));
  }
  return "";
}

}  // namespace

double SampledLevel::to_pixel(double coordinate, std::size_t axis) const {
  return grid_to_pixel(scale * coordinate + offset, size[axis], align_corners);
}

double SampledLevel::from_pixel(double pixel, std::size_t axis) const {
  const double grid = dtype == DType::kFloat32 && scale == 1
                          ? static_cast<double>(exact_grid(pixel, size[axis], align_corners))
                          : pixel_to_grid(pixel, size[axis], align_corners);
  return (grid - offset) / scale;
}

double SampledLevel::rounding(DType dtype) const {
  return size.empty()
             ? 0
             : grid_rounding(dtype, *std::max_element(size.begin(), size.end()), align_corners);
}

bool is_sampling(const onnx::NodeProto& node) {
  return is_op(node, "GridSample") || is_deform_attn(node);
}

std::vector<int> sampling_nodes(const Model& model, std::span<const int> nodes) {
  std::vector<int> out;
  for (const int i : nodes)
    if (const auto& node = model.proto().graph().node(i);
        is_sampling(node) && has_input(node, 0) && has_input(node, 1))
      out.push_back(i);
  return out;
}

std::vector<std::string> sampling_tensors(const Model& model, std::span<const int> sampling) {
  std::vector<std::string> out;
  // Layers share their values.
  const auto add = [&](const std::string& name) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  };
  for (const int i : sampling) {
    const auto& node = model.proto().graph().node(i);
    add(node.input(0));
    add(node.input(1));
    if (is_deform_attn(node) && has_input(node, 4)) add(node.input(4));
  }
  return out;
}

std::vector<SampledLevel> sampled_levels(const Model& model, std::span<const int> sampling,
                                         const TensorMap& tensors,
                                         std::vector<std::string>& notes) {
  std::vector<SampledLevel> out;
  for (const int i : sampling) {
    const auto& node = model.proto().graph().node(i);
    const std::string reason = is_op(node, "GridSample") ? read_grid_sample(node, tensors, out)
                                                         : read_deform_attn(node, tensors, out);
    if (!reason.empty())
      notes.push_back(fmt::format("{}: no coordinates were made: {}", node_label(node), reason));
  }
  return out;
}

}  // namespace tenonnx
