// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/written_sampling.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/status.h"
#include "metrics/elements.h"
#include "model/extract.h"
#include "model/tensor_proto.h"
#include "ort/executor.h"
#include "passes/constants.h"
#include "passes/gather_sampling.h"
#include "passes/movement.h"
#include "passes/rewriter.h"

namespace tenonnx {
namespace {

// A bilinear sample with its masks has some 60 nodes.
constexpr std::size_t kMostNodes = 150;
// Tensors between coordinates and indices, and between the first read and the samples.
constexpr std::size_t kMostSteps = 24;
// Images are -1..1; a coordinate is rounded by up to 2^-22 of the size in pixels, a weight by as
// much. What another padding or half a pixel does is 100 times larger at most points.
constexpr float kBilinearTolerance = 1e-3F;

std::optional<Shape> of_rank(const Rewriter& r, const std::string& tensor, std::size_t rank) {
  auto shape = r.static_shape(tensor);
  if (!shape || shape->size() != rank || element_count(*shape) < 1) return std::nullopt;
  return shape;
}

class Finder {
 public:
  explicit Finder(const Model& model) : model_(model), scratch_(model.clone()), r_(scratch_) {}

  std::vector<WrittenSampling> find() {
    std::vector<WrittenSampling> found;
    for (int i = 0; i < r_.size(); ++i) {
      if (inside_.contains(i) || gather_sampling(r_, i) == GatherSampling::kNone) continue;
      if (auto one = find_at(i)) found.push_back(std::move(*one));
    }
    return found;
  }

 private:
  std::optional<WrittenSampling> find_at(int gather) {
    const std::vector<std::string> samples = samples_after(r_.node(gather).output(0));
    const std::vector<std::string> images = images_before(r_.node(gather).input(0));
    for (const std::string& coordinates : coordinates_before(r_.node(gather).input(1))) {
      const Shape grid = *r_.static_shape(coordinates);
      for (auto s = samples.rbegin(); s != samples.rend(); ++s) {
        const Shape out = *r_.static_shape(*s);
        if (out[0] != grid[0] || out[2] != grid[1] || out[3] != grid[2]) continue;
        for (const std::string& image : images) {
          const Shape shape = *r_.static_shape(image);
          if (shape[0] != out[0] || shape[1] != out[1]) continue;
          const auto nodes = between(*s, image, coordinates);
          if (!nodes) continue;
          for (const auto& [height, width] : sizes(shape, *nodes)) {
            WrittenSampling one{image, coordinates, *s, out[0], out[1], height, width, false};
            if (!computes(one, shape)) continue;
            inside_.insert(nodes->begin(), nodes->end());
            return one;
          }
        }
      }
    }
    return std::nullopt;
  }

  // Of the read and the tensors after it that it is moved to, weighted and summed, those of rank 4.
  std::vector<std::string> samples_after(std::string tensor) const {
    std::vector<std::string> found;
    for (std::size_t step = 0; step < kMostSteps; ++step) {
      if (of_rank(r_, tensor, 4)) found.push_back(tensor);
      const int user = r_.sole_user(tensor);
      if (user < 0) break;
      const onnx::NodeProto& node = r_.node(user);
      if (moved_from(r_, user) != tensor && !is_op(node, "Mul") && !is_op(node, "Add") &&
          !is_op(node, "Where"))
        break;
      tensor = node.output(0);
    }
    return found;
  }

  // What is read, and what that is moved from: [N,D,H,W] before [N,D,H*W].
  std::vector<std::string> images_before(const std::string& tensor) const {
    const std::vector<std::string> moved = movement_chain(r_, tensor).tensors;
    std::vector<std::string> found;
    for (const std::size_t rank : {4, 3})
      for (const std::string& one : moved)
        if (of_rank(r_, one, rank)) found.push_back(one);
    return found;
  }

  // [N,Q,P,2], nearest first.
  std::vector<std::string> coordinates_before(const std::string& indices) const {
    std::vector<std::string> found, open = {indices};
    std::unordered_set<std::string> seen;
    for (std::size_t k = 0; k < open.size() && k < kMostNodes && found.size() < 4; ++k) {
      const std::string name = open[k];
      const int producer = r_.producer(name);
      if (name.empty() || !seen.insert(name).second || r_.constant(name) != nullptr) continue;
      const auto shape = of_rank(r_, name, 4);
      if (shape && shape->back() == 2 && r_.dtype(name) == DType::kFloat32) found.push_back(name);
      if (producer >= 0)
        open.insert(open.end(), r_.node(producer).input().begin(), r_.node(producer).input().end());
    }
    return found;
  }

  // The nodes that make `to` of the two; nullopt where it takes anything else, or not both.
  std::optional<std::vector<int>> between(const std::string& to, const std::string& image,
                                          const std::string& coordinates) const {
    std::vector<std::string> open = {to};
    std::set<int> nodes;
    bool has_image = false, has_coordinates = false;
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (name.empty() || r_.constant(name) != nullptr) continue;
      has_image |= name == image;
      has_coordinates |= name == coordinates;
      if (name == image || name == coordinates) continue;
      const int producer = r_.producer(name);
      if (producer < 0 || nodes.size() > kMostNodes) return std::nullopt;
      if (!nodes.insert(producer).second) continue;
      open.insert(open.end(), r_.node(producer).input().begin(), r_.node(producer).input().end());
    }
    if (!has_image || !has_coordinates) return std::nullopt;
    return std::vector<int>(nodes.begin(), nodes.end());
  }

  // Height and width: those of the image, else what the constants of the indices allow.
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes(const Shape& image,
                                                           const std::vector<int>& nodes) const {
    if (image.size() == 4) return {{image[2], image[3]}};
    std::set<std::int64_t> widths;
    for (const int node : nodes)
      for (const std::string& input : r_.node(node).input())
        if (const auto values = r_.integers(input); values && values->size() == 1)
          if (values->front() > 1 && image[2] % values->front() == 0)
            widths.insert(values->front());
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    for (const std::int64_t width : widths) all.emplace_back(image[2] / width, width);
    return all;
  }

  // Runs it. `one.discrete` says which of the two it is.
  bool computes(WrittenSampling& one, const Shape& image_shape) const {
    if (r_.dtype(one.image) != DType::kFloat32) return false;
    const Shape grid_shape = *r_.static_shape(one.coordinates);
    ExtractOptions options;
    const auto type = [&](const std::string& name, const Shape& shape) {
      options.types.push_back({name, DType::kFloat32, shape, true});
    };
    type(one.image, image_shape);
    type(one.coordinates, grid_shape);
    type(one.samples, *r_.static_shape(one.samples));
    const auto part = extract(model_, {one.image, one.coordinates}, {one.samples}, options);
    if (!part.ok()) return false;
    LoadOptions load;
    load.intra_op_threads = 1;
    load.optimization = Optimization::kDisabled;
    const auto graph = make_cpu_executor()->load(*part, load);
    if (!graph.ok()) return false;
    Tensor image(DType::kFloat32, image_shape);
    std::mt19937 random(1);
    for (std::int64_t i = 0; i < image.size(); ++i)
      image.mutable_data<float>()[i] = static_cast<float>(random() >> 8) * 0x1p-23F - 1;
    for (const bool discrete : {false, true}) {
      one.discrete = discrete;
      const Tensor pixels = positions(grid_shape, one);
      Tensor coordinates(DType::kFloat32, grid_shape);
      for (std::int64_t i = 0; i < coordinates.size(); ++i) {
        const double location = (double{pixels.data<float>()[i]} + 0.5) /
                                static_cast<double>(i % 2 == 0 ? one.width : one.height);
        coordinates.mutable_data<float>()[i] =
            static_cast<float>(discrete ? location : 2 * location - 1);
      }
      const auto outputs = (*graph)->run({{one.image, image}, {one.coordinates, coordinates}});
      if (outputs.ok() && outputs->contains(one.samples) &&
          agrees(one, image, pixels, outputs->at(one.samples)))
        return true;
    }
    return false;
  }

  // In pixels: up to one and a half outside, an eighth away from where int() or floor() steps.
  static Tensor positions(const Shape& shape, const WrittenSampling& one) {
    Tensor pixels(DType::kFloat32, shape);
    std::mt19937 random(2);
    for (std::int64_t i = 0; i < pixels.size(); ++i) {
      const auto size = static_cast<std::uint32_t>(i % 2 == 0 ? one.width : one.height);
      const auto whole = static_cast<float>(random() % (size + 3)) - 2;
      pixels.mutable_data<float>()[i] =
          whole + 0.125F + 0.75F * static_cast<float>(random() >> 8) * 0x1p-24F;
    }
    return pixels;
  }

  static bool agrees(const WrittenSampling& one, const Tensor& image, const Tensor& pixels,
                     const Tensor& samples) {
    const std::int64_t points = pixels.size() / 2 / one.batch;
    const std::int64_t area = one.height * one.width;
    if (samples.size() != one.batch * one.channels * points) return false;
    for (std::int64_t n = 0; n < one.batch; ++n) {
      for (std::int64_t p = 0; p < points; ++p) {
        const float x = pixels.data<float>()[2 * (n * points + p)];
        const float y = pixels.data<float>()[2 * (n * points + p) + 1];
        for (std::int64_t d = 0; d < one.channels; ++d) {
          const float* channel = image.data<float>() + (n * one.channels + d) * area;
          const float is = samples.data<float>()[(n * one.channels + d) * points + p];
          const auto at = [&](std::int64_t i, std::int64_t j) {
            return i < 0 || j < 0 || i >= one.width || j >= one.height ? 0
                                                                       : channel[j * one.width + i];
          };
          if (one.discrete) {
            // int(location * size + 1/2) with location * size = x + 1/2.
            const auto i =
                std::clamp<std::int64_t>(static_cast<std::int64_t>(x + 1), 0, one.width - 1);
            const auto j =
                std::clamp<std::int64_t>(static_cast<std::int64_t>(y + 1), 0, one.height - 1);
            if (is != at(i, j)) return false;
            continue;
          }
          const auto i = static_cast<std::int64_t>(std::floor(x));
          const auto j = static_cast<std::int64_t>(std::floor(y));
          const float u = x - std::floor(x), v = y - std::floor(y);
          const float want = (1 - v) * ((1 - u) * at(i, j) + u * at(i + 1, j)) +
                             v * ((1 - u) * at(i, j + 1) + u * at(i + 1, j + 1));
          if (!(std::fabs(is - want) <= kBilinearTolerance)) return false;
        }
      }
    }
    return true;
  }

  const Model& model_;
  Model scratch_;  // what the reader stands on; nothing is changed
  const Rewriter r_;
  std::set<int> inside_;  // nodes of what was found
};

}  // namespace

std::vector<WrittenSampling> find_written_sampling(const Model& model) {
  const auto& nodes = model.proto().graph().node();
  return std::any_of(nodes.begin(), nodes.end(), reads_at_indices) ? Finder(model).find()
                                                                   : std::vector<WrittenSampling>();
}

void write_grid_samples(Model& model, const std::vector<WrittenSampling>& found) {
  onnx::GraphProto& graph = *model.mutable_proto().mutable_graph();
  UniqueNames names(model.proto());
  std::vector<onnx::NodeProto> nodes;
  const auto constant = [&](const std::string& base, const Tensor& value) {
    const std::string name = names.make(base);
    *graph.add_initializer() = to_tensor_proto(value, name);
    return name;
  };
  const auto add = [&](const char* op_type, const std::vector<std::string>& inputs,
                       const std::string& output) -> onnx::NodeProto& {
    nodes.push_back(make_node(op_type, inputs, {output}));
    nodes.back().set_name(names.make(output + "_" + op_type));
    return nodes.back();
  };
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    const auto one = std::find_if(found.begin(), found.end(), [&](const WrittenSampling& w) {
      return node.output_size() > 0 && node.output(0) == w.samples;
    });
    if (one == found.end()) {
      nodes.push_back(std::move(node));
      continue;
    }
    // Its inputs stand before it, and nothing that it needs goes before it is without a use.
    const std::string image = names.make(one->samples + "_image");
    add("Reshape",
        {one->image, constant(image + "_shape",
                              int64_vector({one->batch, one->channels, one->height, one->width}))},
        image);
    std::string grid = one->coordinates;
    if (one->discrete) {
      const std::string twice = names.make(one->samples + "_twice");
      const Tensor two = from_doubles(DType::kFloat32, {}, {2});
      const Tensor unit = from_doubles(DType::kFloat32, {}, {1});
      add("Mul", {grid, constant(twice + "_2", two)}, twice);
      grid = names.make(one->samples + "_grid");
      add("Sub", {twice, constant(grid + "_1", unit)}, grid);
    }
    onnx::NodeProto& sample = add("GridSample", {image, grid}, one->samples);
    set_attribute(sample, "mode",
                  std::string_view(one->discrete         ? "discrete"
                                   : model.opset() >= 20 ? "linear"
                                                         : "bilinear"));
    set_attribute(sample, "padding_mode", std::string_view("zeros"));
    set_attribute(sample, "align_corners", std::int64_t{0});
  }
  graph.clear_node();
  for (onnx::NodeProto& node : nodes) *graph.add_node() = std::move(node);
  remove_dead_nodes(graph);
}

}  // namespace tenonnx
