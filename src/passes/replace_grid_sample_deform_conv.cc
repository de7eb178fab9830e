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
// An offset is as large as the lattice, and rounded like it: by half a unit in the last place of
// (Ho - 1) * stride_y, which at an encoder's 8,500 queries is 5e-4 pixels. Sampling itself rounds a
// coordinate of an image of W pixels by W * 2^-24 in its first steps, and a form may err by 8 times
// what rounding does (proof.h). So where offsets are rounded by more than 6 times that, the points
// are laid out anew, as near to the image's own shape as their number allows, and the result is
// reshaped: 300 x 4 points as 20 x 60, 8,500 x 4 as 136 x 250. Where that is too coarse as well (of
// a level of 10 x 10 the latter), the pass refuses.
//
// A coordinate outside of (-1, W), NaN and infinities among them, becomes W, where nothing is
// sampled. Class algebraic on finite values: ONNX Runtime 1.29's DeformConv multiplies what is
// outside by 0, so that a NaN or Inf at the edge reaches the output from there, within its channel.
// Refuses: another mode than linear, another padding than zeros; a
// lattice as above, or too coarse a one; a model below opset 19 (convert_opset first); shapes that
// are not known.
#include <algorithm>
#include <cmath>
#include <string>

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
  found.stride = (in - 1) / out + 1;  // the least with (in - 1) / stride + 1 <= out
  if ((in - 1) / found.stride + 1 < out) found.padding = (out - 1) * found.stride + 1 - in;
  return found;
}

// The output's points as rows and columns of a lattice.
struct Layout2D {
  std::int64_t rows = 0, columns = 0;
  Lattice y, x;
  bool padded() const { return y.padding > 0 || x.padding > 0; }
};

Layout2D laid_out(const GridSampleNode& site, std::int64_t rows, std::int64_t columns) {
  return {rows, columns, lattice(site.height, rows), lattice(site.width, columns)};
}

// Half a unit in the last place of the farthest point, in pixels.
double rounding(std::int64_t count, std::int64_t stride) {
  const auto farthest = static_cast<double>(count - 1) * static_cast<double>(stride);
  return farthest < 1 ? 0 : std::exp2(std::floor(std::log2(farthest)) - 24);
}

// The same of the offsets of a lattice, in what sampling rounds a coordinate by.
double coarseness(const GridSampleNode& site, const Layout2D& layout) {
  const auto of = [](std::int64_t count, std::int64_t stride, std::int64_t size) {
    return rounding(count, stride) / (static_cast<double>(size) * 0x1p-24);
  };
  return std::max(of(layout.rows, layout.y.stride, site.height),
                  of(layout.columns, layout.x.stride, site.width));
}
constexpr double kMostCoarse = 6;

// As the output has them, where that is fine enough; else the finest.
Layout2D choose_layout(const GridSampleNode& site) {
  const Layout2D natural = laid_out(site, site.out_height, site.out_width);
  if (coarseness(site, natural) <= kMostCoarse) return natural;
  Layout2D best = natural;
  for (std::int64_t small = 1; small * small <= site.points(); ++small) {
    if (site.points() % small != 0) continue;
    for (const std::int64_t rows : {small, site.points() / small}) {
      const Layout2D other = laid_out(site, rows, site.points() / rows);
      if (coarseness(site, other) < coarseness(site, best)) best = other;
    }
  }
  return best;
}

std::string lattice_reason(const GridSampleNode& site, const Layout2D& natural) {
  if (!natural.padded()) return {};
  return fmt::format(
      "no stride takes {} x {} pixels to {} x {}: padding of {} rows below and {} columns to the "
      "right would have to make up for it (option padding=allow)",
      site.height, site.width, site.out_height, site.out_width, natural.y.padding,
      natural.x.padding);
}

std::string coarse_reason(const GridSampleNode& site, const Layout2D& layout) {
  const double times = coarseness(site, layout);
  if (times <= kMostCoarse) return {};
  return fmt::format(
      "its {} points, laid out as {} x {}, would have offsets that are rounded {:.3g} times as "
      "coarsely "
      "as coordinates of an image of {} x {} pixels are (at most {:g} times is taken)",
      site.points(), layout.rows, layout.columns, times, site.height, site.width, kMostCoarse);
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

// Position less where the lattice has it: float32 [N,1,rows,columns].
std::string offset(SiteWriter& w, const GridSampleNode& site, const Layout2D& layout,
                   const std::string& at, bool along_x) {
  const auto size = static_cast<double>(along_x ? site.width : site.height);
  const std::string inside =
      w.add("And", {w.add("Greater", {at, w.scalar(-1)}), w.add("Less", {at, w.scalar(size)})});
  const std::string taken = w.add("Where", {inside, at, w.scalar(size)});
  Tensor lattice(DType::kFloat32, {1, 1, site.points()});
  for (std::int64_t k = 0; k < site.points(); ++k)
    lattice.mutable_data<float>()[k] = static_cast<float>(
        along_x ? k % layout.columns * layout.x.stride : k / layout.columns * layout.y.stride);
  return w.reshape(w.add("Sub", {taken, w.constant("lattice", lattice)}),
                   {site.batch, 1, layout.rows, layout.columns});
}

void write(Rewriter& r, const GridSampleNode& site, const Layout2D& layout) {
  SiteWriter w(r, site.node);
  const PixelCoordinates at = pixel_coordinates(w, site, PointLayout::kPointsLast);
  const std::string down = offset(w, site, layout, at.y, false);
  const std::string across = offset(w, site, layout, at.x, true);
  Tensor ones(DType::kFloat32, {site.channels, 1, 1, 1});
  std::fill_n(ones.mutable_data<float>(), ones.size(), 1.0F);
  const bool natural = layout.rows == site.out_height;
  const std::string sampled = natural ? site.output : w.fresh("DeformConv");
  onnx::NodeProto node = make_node(
      "DeformConv",
      {site.value, w.constant("ones", ones), w.add("Concat", {down, across}, {{"axis", 1}})},
      {sampled});
  set_attribute(node, "kernel_shape", std::vector<std::int64_t>{1, 1});
  set_attribute(node, "strides", std::vector<std::int64_t>{layout.y.stride, layout.x.stride});
  set_attribute(node, "pads", std::vector<std::int64_t>{0, 0, layout.y.padding, layout.x.padding});
  set_attribute(node, "group", site.channels);
  if (natural) {
    r.replace(site.node, std::move(node));
  } else {
    w.insert(std::move(node));
    w.finish_images(sampled, site);
  }
}

std::string what(const GridSampleNode& site, const Layout2D& layout) {
  std::string text =
      fmt::format("DeformConv of 1 x 1, stride {} x {}", layout.y.stride, layout.x.stride);
  if (layout.padded())
    text += fmt::format(", padded by {} rows and {} columns", layout.y.padding, layout.x.padding);
  if (layout.rows != site.out_height)
    text += fmt::format(", {} x {} points as {} x {}", site.out_height, site.out_width, layout.rows,
                        layout.columns);
  return text;
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
    const Layout2D natural = laid_out(site, site.out_height, site.out_width);
    if (why = lattice_reason(site, natural); !why.empty() && !padding) return why;
    const Layout2D layout = choose_layout(site);
    if (std::string coarse = coarse_reason(site, layout); !coarse.empty()) return coarse;
    if (!r.begin({site.node})) return {};
    write(r, site, layout);
    r.apply(site.node, what(site, layout));
    return {};
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
