// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/grid_sample_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/graph.h"
#include "passes/constants.h"
#include "passes/fusion.h"

namespace tenonnx {
namespace {

constexpr std::int64_t kRank = 4;

std::string read_options(const onnx::NodeProto& node, GridSampleOptions& options) {
  const std::string mode = attribute_or(node, "mode", "linear");  // "bilinear" before opset 20
  if (mode == "linear" || mode == "bilinear")
    options.mode = GridSampleMode::kLinear;
  else if (mode == "nearest")
    options.mode = GridSampleMode::kNearest;
  else if (mode == "cubic" || mode == "bicubic")
    options.mode = GridSampleMode::kCubic;
  else
    return fmt::format("its mode '{}' is none of linear, nearest, cubic", mode);
  const std::string padding = attribute_or(node, "padding_mode", "zeros");
  if (padding == "zeros")
    options.padding = GridSamplePadding::kZeros;
  else if (padding == "border")
    options.padding = GridSamplePadding::kBorder;
  else if (padding == "reflection")
    options.padding = GridSamplePadding::kReflection;
  else
    return fmt::format("its padding_mode '{}' is none of zeros, border, reflection", padding);
  options.align_corners = attribute_or(node, "align_corners", std::int64_t{0}) != 0;
  return {};
}

// The dimension of a tensor of four, -1 where it is not known.
std::int64_t dimension(const std::optional<Shape>& shape, std::size_t axis) {
  return shape && shape->size() == kRank ? (*shape)[axis] : -1;
}

int grid_samples_inside(const onnx::NodeProto& node) {
  int count = 0;
  const auto add = [&](const onnx::GraphProto& body) {
    for_each_graph(body, [&](const onnx::GraphProto& graph) {
      count +=
          static_cast<int>(std::count_if(graph.node().begin(), graph.node().end(), is_grid_sample));
    });
  };
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) add(attribute.g());
    for (const auto& body : attribute.graphs()) add(body);
  }
  return count;
}

std::int64_t known(std::int64_t a, std::int64_t b) { return a >= 0 ? a : b; }

// What counts elements and bytes in 64 bits has to hold whatever a form makes of them.
std::string size_reason(const GridSampleNode& site) {
  constexpr double kMostElements = 0x1p40;
  const auto count = [](std::initializer_list<std::int64_t> sizes) {
    double product = 1;
    for (const std::int64_t size : sizes)
      product *= static_cast<double>(std::max<std::int64_t>(size, 1));
    return product;
  };
  const double most =
      std::max(count({site.batch, site.channels, site.height, site.width}),
               std::max(count({site.batch, site.channels, site.out_height, site.out_width}),
                        count({site.batch, site.out_height, site.out_width, 2})));
  if (most <= kMostElements) return {};
  return fmt::format(
      "it samples {} images of {} x {} pixels at {} x {} points: {:.3g} elements in one tensor, "
      "more than 2^40",
      site.batch, site.height, site.width, site.out_height, site.out_width, most);
}

}  // namespace

bool is_grid_sample(const onnx::NodeProto& node) { return is_op(node, "GridSample"); }

Status for_each_grid_sample(Rewriter& r,
                            const std::function<std::string(GridSampleNode& site)>& rule) {
  return r.run([&](int i) {
    if (const int inside = grid_samples_inside(r.node(i)); inside > 0)
      r.refuse(i, fmt::format("{} GridSample in its body: forms are put into the main graph alone "
                              "(fold_constants inlines an If whose condition is constant)",
                              inside));
    if (!is_grid_sample(r.node(i))) return;
    GridSampleNode site;
    std::string why = read_grid_sample(r, i, site);
    if (why.empty()) why = rule(site);
    if (!why.empty()) r.refuse(i, why);
  });
}

std::string_view to_string(GridSampleMode mode) {
  constexpr std::string_view kNames[] = {"nearest", "linear", "cubic"};
  return kNames[static_cast<int>(mode)];
}

std::string_view to_string(GridSamplePadding padding) {
  constexpr std::string_view kNames[] = {"zeros", "border", "reflection"};
  return kNames[static_cast<int>(padding)];
}

std::string read_grid_sample(const Rewriter& r, int node, GridSampleNode& site) {
  const onnx::NodeProto& proto = r.node(node);
  if (proto.input_size() != 2 || proto.output_size() != 1)
    return fmt::format("it has {} inputs and {} outputs, not 2 and 1", proto.input_size(),
                       proto.output_size());
  site = {};
  site.node = node;
  site.value = proto.input(0);
  site.grid = proto.input(1);
  site.output = proto.output(0);
  if (std::string why = read_options(proto, site.options); !why.empty()) return why;
  const std::optional<Shape> value = r.shape(site.value), grid = r.shape(site.grid),
                             out = r.shape(site.output);
  for (const auto& [name, shape] : {std::pair(&site.value, &value), {&site.grid, &grid}}) {
    if (*shape && (*shape)->size() == kRank) continue;
    if (!*shape) return fmt::format("the rank of '{}' is not known", *name);
    return fmt::format("'{}' is of rank {}: only images (rank 4) are taken", *name,
                       (*shape)->size());
  }
  for (const std::string* name : {&site.value, &site.grid}) {
    std::string why = float32_reason(r, *name, "a 16-bit coordinate does not tell pixels apart");
    if (!why.empty()) return why;
  }
  site.height = (*value)[2];
  site.width = (*value)[3];
  if (site.height < 1 || site.width < 1)
    return fmt::format("the height and width of '{}' must be known, it is {}", site.value,
                       to_string(*value));
  site.batch = known((*value)[0], known((*grid)[0], dimension(out, 0)));
  site.channels = known((*value)[1], dimension(out, 1));
  site.out_height = known((*grid)[1], dimension(out, 2));
  site.out_width = known((*grid)[2], dimension(out, 3));
  return size_reason(site);
}

float pixel_coordinate(float g, std::int64_t size, bool align_corners) {
  // volatile: no step may be fused with the next or kept in a wider type.
  volatile float x = g + 1.0F;
  if (align_corners) {
    x = x * (static_cast<float>(size - 1) / 2);
  } else {
    x = x * (static_cast<float>(size) / 2);
    x = x - 0.5F;
  }
  return x;
}

std::string SiteWriter::add(const char* op_type, const std::vector<std::string>& inputs,
                            std::initializer_list<Attribute> attributes) {
  std::string out = fresh(op_type);
  onnx::NodeProto node = make_node(op_type, inputs, {out});
  for (const auto& [name, value] : attributes) set_attribute(node, name, value);
  insert(std::move(node));
  return out;
}

std::string SiteWriter::transpose(const std::string& x, const std::vector<std::int64_t>& perm) {
  std::string out = fresh("Transpose");
  onnx::NodeProto node = make_node("Transpose", {x}, {out});
  set_attribute(node, "perm", perm);
  insert(std::move(node));
  return out;
}

std::string SiteWriter::reshape(const std::string& x, const std::vector<std::int64_t>& dims) {
  return add("Reshape", {x, integers(dims)});
}

std::string SiteWriter::cast(const std::string& x, DType to) {
  const auto type = to == DType::kInt32   ? onnx::TensorProto::INT32
                    : to == DType::kInt64 ? onnx::TensorProto::INT64
                                          : onnx::TensorProto::FLOAT;
  return add("Cast", {x}, {{"to", type}});
}

std::vector<std::string> SiteWriter::split(const std::string& x, std::int64_t axis,
                                           const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> outs;
  for (std::size_t i = 0; i < sizes.size(); ++i) outs.push_back(fresh("Split"));
  onnx::NodeProto node = make_node("Split", {x, integers(sizes)}, outs);
  set_attribute(node, "axis", axis);
  insert(std::move(node));
  return outs;
}

std::string SiteWriter::constant(std::string_view what, const Tensor& value) {
  return r_.add_constant(base_ + "/" + std::string(what), value);
}

std::string SiteWriter::scalar(double value) {
  const std::string key = fmt::format("f{}", value);
  for (const auto& [made, name] : made_)
    if (made == key) return name;
  return made_.emplace_back(key, constant("constant", float_scalar(value))).second;
}

std::string SiteWriter::integer(DType dtype, std::int64_t value) {
  const std::string key = fmt::format("{} {}", to_string(dtype), value);
  for (const auto& [made, name] : made_)
    if (made == key) return name;
  const Tensor tensor =
      dtype == DType::kInt32
          ? Tensor::from<std::int32_t>(dtype, {}, {static_cast<std::int32_t>(value)})
          : Tensor::from<std::int64_t>(DType::kInt64, {}, {value});
  return made_.emplace_back(key, constant("constant", tensor)).second;
}

std::string SiteWriter::integers(const std::vector<std::int64_t>& values) {
  const std::string key = fmt::format("[{}]", fmt::join(values, ","));
  for (const auto& [made, name] : made_)
    if (made == key) return name;
  return made_.emplace_back(key, constant("shape", int64_vector(values))).second;
}

void SiteWriter::finish(const char* op_type, const std::vector<std::string>& inputs,
                        std::initializer_list<Attribute> attributes) {
  onnx::NodeProto node = make_node(op_type, inputs, {base_});
  for (const auto& [name, value] : attributes) set_attribute(node, name, value);
  r_.replace(at_, std::move(node));
}

void SiteWriter::finish_images(const std::string& x, const GridSampleNode& site) {
  std::vector<std::int64_t> dims = {0, 0, site.out_height, site.out_width};
  if (site.out_height >= 0 && site.out_width >= 0 && site.channels >= 0)
    dims = {site.batch, site.channels, site.out_height, site.out_width};
  finish("Reshape", {x, integers(dims)});
}

GridCoordinates grid_coordinates(SiteWriter& w, const GridSampleNode& site, PointLayout layout) {
  std::vector<std::string> axes;
  if (layout == PointLayout::kChannelsLast) {
    axes = w.split(w.reshape(site.grid, {0, -1, 2}), 2, {1, 1});
  } else {
    axes = w.split(site.grid, 3, {1, 1});
    for (std::string& axis : axes) axis = w.reshape(axis, {0, 1, -1});
  }
  return {axes[0], axes[1]};
}

PixelCoordinates pixel_coordinates(SiteWriter& w, const GridSampleNode& site, PointLayout layout) {
  const bool align = site.options.align_corners;
  const auto pixels = [&](const std::string& g, std::int64_t size) {
    const std::string from_edge = w.add("Add", {g, w.scalar(1)});
    // Halving is exact, so that it may come before the other steps.
    const double half = static_cast<double>(align ? size - 1 : size) / 2;
    const std::string scaled = w.add("Mul", {from_edge, w.scalar(half)});
    return align ? scaled : w.add("Sub", {scaled, w.scalar(0.5)});
  };
  const GridCoordinates g = grid_coordinates(w, site, layout);
  PixelCoordinates at;
  at.x = pixels(g.x, site.width);
  at.y = pixels(g.y, site.height);
  return at;
}

}  // namespace tenonnx
