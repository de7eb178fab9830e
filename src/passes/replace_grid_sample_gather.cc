// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// replace_grid_sample_gather: reads the four neighbours by computed indices and adds them up.
//
// before: y = GridSample(value, grid)
// after:  x = (grid_x + 1) * W/2 - 1/2, or (grid_x + 1) * (W-1)/2 with align_corners; y alike
//         x0 = floor(x), x1 = x0 + 1, wx0 = x1 - x, wx1 = x - x0
//         y = sum of wy_i * wx_j * Gather(value, y_i * W + x_j) over the four
//
// Options:
//   form=auto (default): the first of these whose indices are all exact in the arithmetic below.
//     rows: Gather of [N*H*W, C], axis 0; the index (n*H + y)*W + x goes to N*H*W - 1.
//     elements: GatherElements of [N,C,H*W]; the index y*W + x goes to H*W - 1.
//     two_axis: GatherND of [N,H,W,C]; the indices y and x go to H - 1 and W - 1.
//   index_arithmetic=int32 (default), float32, float16 or bfloat16: what a device computes indices
//     in; whole numbers are exact to 2^31 - 1, 2^24, 2048 and 256. With int32 coordinates are cast
//     first and multiplied as integers, with a float type multiplied in it and cast last.
//   device=NAME, in its place: that of the device file (arithmetic, "indices"; else its storage),
//     as htp-v73.
//   weights=product (default): four weights on small tensors, then four products.
//     nested: wy0 * (wx0 * a + wx1 * b) + wy1 * (wx0 * c + wx1 * d).
//   zeros=select (default): Where puts 0 for what is not sampled, so that no NaN or Inf of it
//     reaches the output. multiply: a weight of 0 alone, cheaper; Inf * 0 is NaN. border: padding
//     of zeros is read from zeros that Concat puts around the value, for devices without Where on
//     large tensors (a constant Pad falls to the CPU on some, and the edge replicated is another
//     padding); a neighbour inside of weight 0 is multiplied.
// zeros: a coordinate not in (-1, W), infinities and NaN among them, becomes W, whose neighbours
// are all outside; each neighbour outside has weight 0 and an index that is moved inside. border:
// coordinates are clamped, NaN to 0. reflection: folded, beyond 2^30 and NaN to pixel 0, then
// clamped. nearest: rounded half to even, one read; with reflection rounded before it is folded.
// Every float is inside before it is cast: no index leaves the tensor, whatever the grid holds.
//
// Class algebraic. Bit for bit ONNX Runtime 1.29's own (CPU, x86-64, finite values, zeros of either
// sign alike): nearest; linear with zeros, product weights without align_corners and nested ones
// with align_corners, as its two code paths have it. border and reflection differ in the last bits:
// it weighs with coordinates that are not clamped. Refuses: cubic (sixteen neighbours); an index
// that no form has exactly; a device that takes Gather with constant indices alone; anything but
// float32 images (rank 4) of known height and width; zeros=border where images or channels are not
// known.
#include <string>

#include "base/status.h"
#include "passes/grid_sample_gather.h"
#include "passes/grid_sample_taps.h"
#include "passes/passes.h"

namespace tenonnx {
namespace {

struct Options {
  GatherOptions gather;
  bool nested = false;
  ZeroForm zeros = ZeroForm::kSelect;
};

Result<Options> read_options(const PassOptions& options) {
  constexpr const char* kPass = "replace_grid_sample_gather";
  TENONNX_RETURN_IF_ERROR(
      only_options(kPass, options, {"form", "index_arithmetic", "device", "weights", "zeros"}));
  Options read;
  TENONNX_ASSIGN_OR_RETURN(read.gather, gather_options(kPass, options));
  if (const auto weights = options.find("weights"); weights != options.end()) {
    if (weights->second != "product" && weights->second != "nested")
      return InvalidArgument("{}: weights must be product or nested, got '{}'", kPass,
                             weights->second);
    read.nested = weights->second == "nested";
  }
  if (const auto zeros = options.find("zeros"); zeros != options.end()) {
    if (zeros->second == "multiply")
      read.zeros = ZeroForm::kMultiply;
    else if (zeros->second == "border")
      read.zeros = ZeroForm::kBorder;
    else if (zeros->second != "select")
      return InvalidArgument("{}: zeros must be select, multiply or border, got '{}'", kPass,
                             zeros->second);
  }
  return read;
}

// The sum over the neighbours, in the layout of the reads.
std::string linear(SiteWriter& w, const Options& options, PixelReader& reader, const AxisTaps& x,
                   const AxisTaps& y) {
  std::string rows[2], columns[2], sum, lines[2];
  for (int i = 0; i < 2; ++i) {
    rows[i] = reader.row(y.index[i]);
    columns[i] = reader.column(x.index[i]);
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      std::string pixel = reader.read(rows[i], columns[j]);
      const bool select = options.zeros == ZeroForm::kSelect;
      std::string weight;
      if (!options.nested || select) weight = w.add("Mul", {y.weight[i], x.weight[j]});
      if (select)
        pixel = w.add("Where", {w.add("Equal", {weight, w.scalar(0)}), w.scalar(0), pixel});
      std::string& to = options.nested ? lines[i] : sum;
      const std::string part = w.add("Mul", {options.nested ? x.weight[j] : weight, pixel});
      to = to.empty() ? part : w.add("Add", {to, part});
    }
  }
  if (!options.nested) return sum;
  return w.add("Add",
               {w.add("Mul", {y.weight[0], lines[0]}), w.add("Mul", {y.weight[1], lines[1]})});
}

std::string nearest(SiteWriter& w, const Options& options, PixelReader& reader, const AxisTaps& x,
                    const AxisTaps& y) {
  std::string pixel = reader.read(reader.row(y.index[0]), reader.column(x.index[0]));
  if (x.inside.empty()) return pixel;
  const std::string inside = w.add("And", {x.inside, y.inside});
  if (options.zeros == ZeroForm::kSelect) return w.add("Where", {inside, pixel, w.scalar(0)});
  return w.add("Mul", {pixel, w.cast(inside, DType::kFloat32)});
}

}  // namespace

namespace passes {

Result<PassOutcome> replace_grid_sample_gather(Model& model, const PassOptions& given) {
  TENONNX_ASSIGN_OR_RETURN(const Options options, read_options(given));
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(for_each_grid_sample(r, [&](const GridSampleNode& site) -> std::string {
    if (site.options.mode == GridSampleMode::kCubic)
      return "its mode is cubic: sixteen neighbours are not written as Gather";
    const bool border = options.zeros == ZeroForm::kBorder && site.zeros();
    if (border && (site.batch < 0 || site.channels < 0))
      return fmt::format(
          "a border of zeros needs the number of images and channels of "
          "'{}': take zeros=select or fix_input_shapes",
          site.value);
    GatherPlan plan;
    if (const std::string why = plan_gather(site, options.gather, border ? 1 : 0, plan);
        !why.empty())
      return why;
    if (!r.begin({site.node})) return {};
    SiteWriter w(r, site.node);
    PixelReader reader(w, site, plan, border ? surround_with_zeros(w, site) : site.value);
    const PixelCoordinates at = pixel_coordinates(w, site, plan.layout());
    const AxisTaps x = axis_taps(w, site, at.x, site.width, options.zeros);
    const AxisTaps y = axis_taps(w, site, at.y, site.height, options.zeros);
    reader.finish(
        site.linear() ? linear(w, options, reader, x, y) : nearest(w, options, reader, x, y), site);
    r.apply(site.node, fmt::format("{} Gather of {} x {} pixels as {}{}", site.linear() ? 4 : 1,
                                   site.height, site.width, to_string(plan.form),
                                   !site.linear()   ? ""
                                   : options.nested ? ", nested weights"
                                                    : ", product weights"));
    return {};
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
