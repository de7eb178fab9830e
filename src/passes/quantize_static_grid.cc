// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// quantize_static_grid: stores a constant grid in 4 or 2.2 bytes a point instead of 8.
//
// before: y = GridSample(value, grid), grid constant, linear, padding zeros or border
// after:  y = tenonnx.StaticSample(value, ...)
//   storage=int16   (default) coordinates [N,Ho,Wo,2] in int16: pixel = offset + step * q, over
//                   the pixels that sample something
//   storage=blocks  10 x 10 points share a base and a step for each axis, float32, and each has two
//                   int8 deltas: pixel = base + step * delta
// The operator decodes a band of points at a time and keeps no float grid. Source:
// kernels/static_sample/static_sample.h. fold_static_grid with form=operator rounds nothing and
// takes 32 bytes a point.
//
// Class approximate: the task gate decides. Each site says by how many pixels e a coordinate moves
// along an axis at most; y moves by at most 4 * e * max |value| then, as there are two axes and
// neighbours differ by at most 2 * max |value|, and by the rounding of decoding in float32, 2^-22
// (W + H + 4) pixels for e. Needs libtenonnx_ops.so.
// Refuses: nearest and cubic, as rounding coordinates moves a tie to another pixel and cubic has no
// such form; reflection; a grid that is no constant; anything but float32 images (rank 4) of known
// height and width.
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/static_sample/static_sample.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/static_grid.h"

namespace tenonnx {
namespace {

constexpr const char* kPass = "quantize_static_grid";

Result<bool> blocks_option(const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options(kPass, options, {"storage"}));
  const auto it = options.find("storage");
  if (it == options.end() || it->second == "int16") return false;
  if (it->second == "blocks") return true;
  return InvalidArgument("{}: storage must be int16 or blocks, got '{}'", kPass, it->second);
}

std::string unfit(const GridSampleNode& site) {
  if (!site.linear())
    return fmt::format("its mode is {}: rounded coordinates are for linear alone",
                       to_string(site.options.mode));
  if (site.options.padding == GridSamplePadding::kReflection)
    return "its padding is reflection: StaticSample has zeros and border";
  return {};
}

onnx::NodeProto sample_node(Rewriter& r, const GridSampleNode& site, const StaticGrid& g) {
  SiteWriter w(r, site.node);
  std::vector<std::string> inputs = {site.value, "", "", ""};
  if (g.format == StaticFormat::kInt16) {
    inputs[3] = w.constant(
        "coordinates",
        Tensor::from(DType::kInt16, {g.images, g.out_height, g.out_width, 2}, g.coordinates));
  } else {
    constexpr std::int64_t kPoints = StaticGrid::kBlockSide * StaticGrid::kBlockSide;
    inputs.push_back(
        w.constant("base", Tensor::from(DType::kFloat32, {g.images, g.blocks(), 4}, g.base)));
    inputs.push_back(w.constant(
        "delta", Tensor::from(DType::kInt8, {g.images, g.blocks(), kPoints, 2}, g.delta)));
  }
  const bool int16 = g.format == StaticFormat::kInt16;
  onnx::NodeProto node = static_sample_node(site, inputs, int16 ? "int16" : "blocks");
  set_attribute(node, "padding_mode", to_string(site.options.padding));
  if (int16) {
    for (const auto& [name, pair] : {std::pair{"step", g.step}, {"offset", g.offset}}) {
      onnx::AttributeProto& attribute = *node.add_attribute();
      attribute.set_name(name);
      attribute.set_type(onnx::AttributeProto::FLOATS);
      attribute.add_floats(pair[0]);
      attribute.add_floats(pair[1]);
    }
  }
  return node;
}

}  // namespace

namespace passes {

Result<PassOutcome> quantize_static_grid(Model& model, const PassOptions& options) {
  TENONNX_ASSIGN_OR_RETURN(const bool blocks, blocks_option(options));
  Rewriter r(model);
  StaticGrids grids(model);
  std::vector<GridSampleNode> made;
  TENONNX_RETURN_IF_ERROR(for_each_grid_sample(r, [&](GridSampleNode& site) -> std::string {
    std::string why = unfit(site);
    if (!why.empty()) return why;
    const Tensor* grid = grids.find(r, site, why);
    if (grid == nullptr) return why;
    const StaticSource source = {grid->data<float>(),
                                 images_with_own_grid(*grid),
                                 site.height,
                                 site.width,
                                 site.out_height,
                                 site.out_width,
                                 site.zeros() ? StaticPadding::kZeros : StaticPadding::kBorder,
                                 site.options.align_corners};
    const StaticEncoding encoded = blocks ? encode_blocks(source) : encode_int16(source);
    if (why = encoded.grid.check(); !why.empty()) return why;
    if (!r.begin({site.node})) return {};
    r.replace(site.node, sample_node(r, site, encoded.grid));
    made.push_back(site);
    r.apply(site.node,
            fmt::format("grid of {} bytes in {} as {}, coordinates move by up to {:.3g} pixels",
                        8 * source.images * site.points(), encoded.bytes,
                        blocks ? "blocks" : "int16", encoded.error_pixels));
    return {};
  }));
  PassOutcome outcome = r.finish();
  declare_static_samples(model, made);
  return outcome;
}

}  // namespace passes
}  // namespace tenonnx
