// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// replace_grid_sample_discrete: reads one pixel for each point instead of weighing four.
//
// before: y = GridSample(value, grid), linear
// after:  y = Gather(value, j * W + i), of one of two formulas for i (j alike, with H):
//   formula=nearest     i = round(x), half to even, where x is the pixel coordinate of GridSample
//   formula=historical  i = int(r * W + 1/2), r = (grid_x + 1) / 2 the location in 0..1, cut off
//                       after the point: what RT-DETRv2 and its descendants export as "discrete"
// Each is then bound by its own axis: i to 0..W-1, j to 0..H-1; NaN gives 0.
//
// The two differ: x is r * W - 1/2, so that the historical index is the nearest one plus a whole
// pixel wherever the fraction of r * W is 1/2 or more: half of all indices. A model that was
// trained with one of them needs that one. No padding is left: outside reads the edge,
// as in those models; outside=zeros with formula=nearest keeps padding of zeros, by a mask.
//
// Options:
//   formula=nearest (default) or historical, outside=edge (default) or zeros: as above.
//   legacy_square_clamp=0 (default) or, with formula=historical, 1 (also --legacy-square-clamp):
//     both axes are bound by H-1, as the first implementations did, which is wrong where W is not
//     H. For finding out what an old deployment computes, never for a new one.
//   form=auto (default): the first of these whose indices are all exact in the arithmetic below.
//     rows: Gather of [N*H*W, C], axis 0; the index (n*H + y)*W + x goes to N*H*W - 1.
//     elements: GatherElements of [N,C,H*W]; the index y*W + x goes to H*W - 1.
//     two_axis: GatherND of [N,H,W,C]; the indices y and x go to H - 1 and W - 1.
//   index_arithmetic=int32 (default), float32, float16 or bfloat16: what a device computes indices
//     in; whole numbers are exact to 2^31 - 1, 2^24, 2048 and 256.
//   device=NAME, in its place: that of the device file (arithmetic, "indices"; else its storage),
//     as htp-v73.
// Class approximate: another model, which the task gate decides on. r comes from a grid that was
// rounded to float32 once more than the location was: an index differs from int(r * W + 1/2) of the
// location itself where that is within 2^-22 W of a whole number.
// Refuses: nearest (replace_grid_sample_gather has it exactly) and cubic; formula=historical with
// align_corners, which that formula never meant; legacy_square_clamp where H exceeds W: the old
// index leaves the row; an index that no form has exactly; a device that takes Gather with constant
// indices alone; anything but float32 images (rank 4) of known height and width.
#include <string>

#include "base/status.h"
#include "passes/grid_sample_gather.h"
#include "passes/grid_sample_taps.h"
#include "passes/passes.h"

namespace tenonnx {
namespace {

constexpr const char* kPass = "replace_grid_sample_discrete";

struct Options {
  GatherOptions gather;
  bool historical = false, square_clamp = false, zeros_outside = false;
};

Result<Options> read_options(const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options(
      kPass, options,
      {"formula", "outside", "legacy_square_clamp", "form", "index_arithmetic", "device"}));
  Options read;
  TENONNX_ASSIGN_OR_RETURN(read.gather, gather_options(kPass, options));
  if (const auto formula = options.find("formula"); formula != options.end()) {
    if (formula->second != "nearest" && formula->second != "historical")
      return InvalidArgument("{}: formula must be nearest or historical, got '{}'", kPass,
                             formula->second);
    read.historical = formula->second == "historical";
  }
  if (const auto outside = options.find("outside"); outside != options.end()) {
    if (outside->second != "edge" && outside->second != "zeros")
      return InvalidArgument("{}: outside must be edge or zeros, got '{}'", kPass, outside->second);
    read.zeros_outside = outside->second == "zeros";
    if (read.zeros_outside && read.historical)
      return InvalidArgument("{}: outside=zeros goes with formula=nearest alone", kPass);
  }
  TENONNX_ASSIGN_OR_RETURN(const std::int64_t square,
                           count_option(kPass, options, "legacy_square_clamp", 0));
  if (square > 1)
    return InvalidArgument("{}: legacy_square_clamp must be 0 or 1, got '{}'", kPass, square);
  read.square_clamp = square == 1;
  if (read.square_clamp && !read.historical)
    return InvalidArgument("{}: legacy_square_clamp is a fault of formula=historical alone", kPass);
  return read;
}

// int(r * size + 1/2), bound to 0..most.
std::string historical_index(SiteWriter& w, const std::string& g, std::int64_t size,
                             std::int64_t most) {
  const std::string scaled =
      w.add("Mul", {w.add("Add", {g, w.scalar(1)}), w.scalar(static_cast<double>(size) / 2)});
  const std::string at = w.add("Add", {scaled, w.scalar(0.5)});
  // Not Clip, which keeps NaN. What is cut off below 0 would be 0 as well.
  const std::string low = w.add("Where", {w.add("Greater", {at, w.scalar(0)}), at, w.scalar(0)});
  return w.add("Floor", {w.add("Min", {low, w.scalar(static_cast<double>(most))})});
}

std::string reason_against(const GridSampleNode& site, const Options& options) {
  if (!site.linear())
    return fmt::format("its mode is {}{}", to_string(site.options.mode),
                       site.options.mode == GridSampleMode::kNearest
                           ? ": replace_grid_sample_gather replaces it exactly"
                           : ", not linear");
  if (options.historical && site.options.align_corners)
    return "it has align_corners, which the historical formula never meant: take formula=nearest";
  if (options.zeros_outside && !site.zeros())
    return fmt::format("its padding is {}: take outside=edge", to_string(site.options.padding));
  if (options.square_clamp && site.height > site.width)
    return fmt::format(
        "'{}' is {} high and {} wide: bound by H-1, an index along x would leave its row",
        site.value, site.height, site.width);
  return {};
}

}  // namespace

namespace passes {

Result<PassOutcome> replace_grid_sample_discrete(Model& model, const PassOptions& given) {
  TENONNX_ASSIGN_OR_RETURN(const Options options, read_options(given));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(for_each_grid_sample(r, [&](const GridSampleNode& site) -> std::string {
    GatherPlan plan;
    std::string why = reason_against(site, options);
    if (why.empty()) why = plan_gather(site, options.gather, 0, plan);
    if (!why.empty()) return why;
    if (!r.begin({site.node})) return {};
    SiteWriter w(r, site.node);
    PixelReader reader(w, site, plan, site.value);
    std::string x, y, inside;
    if (options.historical) {
      const std::int64_t most = (options.square_clamp ? site.height : site.width) - 1;
      const GridCoordinates g = grid_coordinates(w, site, plan.layout());
      x = historical_index(w, g.x, site.width, most);
      y = historical_index(w, g.y, site.height, site.height - 1);
    } else {
      GridSampleNode nearest = site;
      nearest.options.mode = GridSampleMode::kNearest;
      if (!options.zeros_outside) nearest.options.padding = GridSamplePadding::kBorder;
      const PixelCoordinates at = pixel_coordinates(w, nearest, plan.layout());
      const AxisTaps along_x = axis_taps(w, nearest, at.x, site.width, ZeroForm::kSelect);
      const AxisTaps along_y = axis_taps(w, nearest, at.y, site.height, ZeroForm::kSelect);
      x = along_x.index[0];
      y = along_y.index[0];
      if (options.zeros_outside) inside = w.add("And", {along_x.inside, along_y.inside});
    }
    std::string pixel = reader.read(reader.row(y), reader.column(x));
    if (!inside.empty()) pixel = w.add("Where", {inside, pixel, w.scalar(0)});
    reader.finish(pixel, site);
    r.apply(site.node,
            fmt::format("one Gather of {} x {} pixels as {}, {}", site.height, site.width,
                        to_string(plan.form),
                        options.square_clamp ? "historical formula, both axes bound by H-1"
                        : options.historical ? "historical formula"
                                             : "nearest pixel"));
    return {};
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
