// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// replace_grid_sample_deform_conv: samples with a deformable convolution of one tap and weight 1.
//
// before: y = GridSample(value, grid)
// after:  x_i,j = (grid_x + 1) * W/2 - 1/2, or (grid_x + 1) * (W-1)/2 with align_corners; y alike
//         y = DeformConv(value, 1, offset)      offset_i,j = (y_i,j - i * stride_y,
//                                                             x_i,j - j * stride_x)
//
// DeformConv (opset 19) has a kernel of 1 x 1, group = channels and a weight of 1 for each, so that
// channel c of the output is the bilinear sample of channel c at (i * stride_y, j * stride_x) +
// offset. Its bilinear sampling lets neighbours outside count as 0, as padding zeros does.
//
// The condition is on the output's lattice: without padding a convolution of 1 x 1 has
// floor((H - 1) / stride) + 1 rows. Ho must be that for a whole stride (Ho = H for stride 1), and
// Wo likewise. A larger output, as a bird's-eye view of 200 x 200 from 16 x 44 values, needs
// padding below and to the right by more than the kernel: ONNX has that, few devices do. Option
// padding=allow takes it; the default, padding=none, refuses.
//
// The offset is as large as the lattice, and rounded like it: by half a unit in the last place of
// (Ho - 1) * stride_y, which at 8,500 queries is 5e-4 pixels. Coordinates of an image of 80 pixels
// are right to 2e-5 (2.5 units of 80), and 8 times that is what rounding may do (proof.h); a
// lattice of at most 16 times the image's size stays within: 8 units of its size. Beyond, the pass
// refuses.
//
// A coordinate outside of (-1, W), NaN and infinities among them, becomes W, where nothing is
// sampled. Class algebraic on finite values: ONNX Runtime 1.29's DeformConv multiplies what is
// outside by 0, so that a NaN or Inf at the edge reaches the output from there, within its channel.
// Refuses: another mode than linear, another padding than zeros; a
// lattice as above, or too far a one; a model below opset 19 (convert_opset first); shapes that are
// not known.
#include <cmath>
#include <string>
#include <string_view>

#include "base/status.h"
#include "passes/fusion.h"
#include "passes/grid_sample_form.h"
#include "passes/grid_sample_taps.h"
#include "passes/options.h"
#include "passes/passes.h"

namespace tenonnx {
namespace {

struct Lattice {
  std::int64_t stride = 1, padding = 0;  // below or to the right
};

// The stride that needs the least padding for `out` of `in`.
Lattice lattice(std::int64_t in, std::int64_t out) {
  Lattice found;
  while ((in - 1) / found.stride + 1 > out) ++found.stride;
  if ((in - 1) / found.stride + 1 < out) found.padding = (out - 1) * found.stride + 1 - in;
  return found;
}

std::string lattice_reason(const GridSampleNode& site, const Lattice& y, const Lattice& x) {
  if (y.padding == 0 && x.padding == 0) return {};
  return fmt::format(
      "no stride takes {} x {} pixels to {} x {}: padding of {} rows below and {} columns to the "
      "right would have to make up for it (option padding=allow)",
      site.height, site.width, site.out_height, site.out_width, y.padding, x.padding);
}

// Sizes of the image beyond which a lattice rounds its offsets too coarsely.
constexpr std::int64_t kFarLattice = 16;

std::string reach_reason(const GridSampleNode& site, const Lattice& y, const Lattice& x) {
  const auto reason = [](std::int64_t last, std::int64_t size, std::string_view what) {
    if (last <= kFarLattice * size) return std::string();
    const auto far = static_cast<float>(last);
    return fmt::format(
        "its output reaches to {} {}, {:.0f} times the image's {}: offsets that large are rounded "
        "by "
        "up to {:.1e} pixels, which is more than rounding does to the coordinates (at most {} "
        "times "
        "is taken)",
        what, last, static_cast<double>(last) / static_cast<double>(size), size,
        (std::nextafter(far, 2 * far) - far) / 2, kFarLattice);
  };
  const std::string down = reason((site.out_height - 1) * y.stride, site.height, "row");
  return down.empty() ? reason((site.out_width - 1) * x.stride, site.width, "column") : down;
}

std::string unfit(const Rewriter& r, const GridSampleNode& site) {
  if (!site.linear())
    return fmt::format("its mode is {}: DeformConv samples linearly", to_string(site.options.mode));
  if (!site.zeros())
    return fmt::format("its padding is {}: DeformConv takes zeros for what is outside",
                       to_string(site.options.padding));
  if (site.batch < 1 || site.channels < 1 || site.points() < 1)
    return fmt::format("the shapes of '{}' and '{}' must be known and not empty", site.value,
                       site.grid);
  return opset_reason(r, "DeformConv", 19);
}

// Position less where the lattice has it: float32 [N,1,Ho,Wo].
std::string offset(SiteWriter& w, const GridSampleNode& site, const std::string& at, bool columns,
                   std::int64_t stride) {
  const auto size = static_cast<double>(columns ? site.width : site.height);
  const std::string inside =
      w.add("And", {w.add("Greater", {at, w.scalar(-1)}), w.add("Less", {at, w.scalar(size)})});
  const std::string taken = w.add("Where", {inside, at, w.scalar(size)});
  Tensor lattice(DType::kFloat32, {1, 1, site.points()});
  for (std::int64_t k = 0; k < site.points(); ++k)
    lattice.mutable_data<float>()[k] =
        static_cast<float>((columns ? k % site.out_width : k / site.out_width) * stride);
  return w.reshape(w.add("Sub", {taken, w.constant("lattice", lattice)}),
                   {site.batch, 1, site.out_height, site.out_width});
}

void write(Rewriter& r, const GridSampleNode& site, const Lattice& y, const Lattice& x) {
  SiteWriter w(r, site.node);
  const PixelCoordinates at = pixel_coordinates(w, site, PointLayout::kPointsLast);
  const std::string down = offset(w, site, at.y, false, y.stride);
  const std::string across = offset(w, site, at.x, true, x.stride);
  Tensor ones(DType::kFloat32, {site.channels, 1, 1, 1});
  std::fill_n(ones.mutable_data<float>(), ones.size(), 1.0F);
  onnx::NodeProto node = make_node(
      "DeformConv",
      {site.value, w.constant("ones", ones), w.add("Concat", {down, across}, {{"axis", 1}})},
      {site.output});
  set_attribute(node, "kernel_shape", std::vector<std::int64_t>{1, 1});
  set_attribute(node, "strides", std::vector<std::int64_t>{y.stride, x.stride});
  set_attribute(node, "pads", std::vector<std::int64_t>{0, 0, y.padding, x.padding});
  set_attribute(node, "group", site.channels);
  r.replace(site.node, std::move(node));
}

}  // namespace

namespace passes {

Result<PassOutcome> replace_grid_sample_deform_conv(Model& model, const PassOptions& options) {
  constexpr const char* kPass = "replace_grid_sample_deform_conv";
  TENONNX_RETURN_IF_ERROR(only_options(kPass, options, {"padding"}));
  bool padding = false;
  if (const auto it = options.find("padding"); it != options.end()) {
    if (it->second != "none" && it->second != "allow")
      return InvalidArgument("{}: padding must be none or allow, got '{}'", kPass, it->second);
    padding = it->second == "allow";
  }
  Rewriter r(model);
  TENONNX_RETURN_IF_ERROR(for_each_grid_sample(r, [&](const GridSampleNode& site) -> std::string {
    std::string why = unfit(r, site);
    if (!why.empty()) return why;
    const Lattice y = lattice(site.height, site.out_height);
    const Lattice x = lattice(site.width, site.out_width);
    if (why = lattice_reason(site, y, x); !why.empty() && !padding) return why;
    if (std::string far = reach_reason(site, y, x); !far.empty()) return far;
    if (!r.begin({site.node})) return {};
    write(r, site, y, x);
    r.apply(site.node, fmt::format("DeformConv of 1 x 1, stride {} x {}{}", y.stride, x.stride,
                                   why.empty() ? ""
                                               : fmt::format(", padded by {} rows and {} columns",
                                                             y.padding, x.padding)));
    return {};
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
