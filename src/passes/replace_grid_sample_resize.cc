// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// replace_grid_sample_resize: a constant grid of straight lines needs no sampling at all.
//
// before: y = GridSample(value, grid)     x of the grid depends on the column alone, y on the row
// after:  form resize: y = Slice(Resize(Slice(value)))    where columns and rows are evenly spaced
//         form matmul: y = A [Ho,H] * value [H,W] * B [W,Wo]    on any such grid
//
// resize: pixels x = begin + (j + skip + 0.5) * in / out - 0.5 (half_pixel), or begin + (j + skip)
// * (in - 1) / (out - 1) (align_corners), with whole begin, in, out and skip: Slice takes the `in`
// pixels from `begin` on, Resize makes `out` of them, Slice takes those from `skip` on; what does
// nothing is left out. The fewest outputs win. Both axes have one rule.
// matmul: row i of A has the two weights (nearest: the 1) of output row i, B those of the columns;
// what is outside has none. The product of fewer operations comes first.
//
// The border: Resize clamps. That is what padding border does; zeros and reflection do not, so that
// there every coordinate must lie between the first and the last pixel. An upsampled whole image
// (half_pixel begins at -0.5 + in / (2 out) < 0) is refused as Resize under zeros padding.
//
// Option form: auto (default): resize, else matmul; resize; matmul.
// Class algebraic. In matmul a value of Inf or NaN that is not sampled gives NaN in its row and its
// column, as 0 * Inf is NaN. Refuses: cubic; a grid that is no constant or not separable; as
// resize: images with different grids, unevenly spaced or falling coordinates (a mirror), a border
// that does not agree, nearest halfway between two pixels (Resize does not round to even), images
// or channels that are not known.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/status.h"
#include "passes/grid_lines.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/static_axis.h"
#include "passes/static_grid.h"

namespace tenonnx {
namespace {

enum class Form { kAuto, kResize, kMatMul };

Result<Form> form_option(const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("replace_grid_sample_resize", options, {"form"}));
  const auto it = options.find("form");
  if (it == options.end() || it->second == "auto") return Form::kAuto;
  if (it->second == "resize") return Form::kResize;
  if (it->second == "matmul") return Form::kMatMul;
  return InvalidArgument(
      "replace_grid_sample_resize: form must be auto, resize or matmul, got '{}'", it->second);
}

struct ResizePlan {
  ResizeRule rule = ResizeRule::kHalfPixel;
  ResizeAxis x, y;
};

std::vector<double> pixels(const std::vector<float>& g, std::int64_t size, bool align) {
  std::vector<double> at;
  const auto s = static_cast<double>(size);
  for (const float v : g) at.push_back(align ? (v + 1.0) / 2 * (s - 1) : ((v + 1.0) * s - 1) / 2);
  return at;
}

// Why an axis is not sampled as Resize does: "" where it may be.
std::string border_reason(const GridSampleNode& site, const char* name,
                          const std::vector<double>& at, std::int64_t size) {
  const double tolerance = line_tolerance(size), last = static_cast<double>(size - 1);
  for (std::size_t j = 0; j < at.size(); ++j) {
    if (!std::isfinite(at[j])) return fmt::format("{} {} of its grid is no number", name, j);
    const bool inside = at[j] >= -tolerance && at[j] <= last + tolerance;
    if (!inside && site.options.padding != GridSamplePadding::kBorder)
      return fmt::format(
          "{} {} is at pixel {:.4g}, outside of 0 to {}: Resize clamps there, padding "
          "{} does not",
          name, j, at[j], size - 1, to_string(site.options.padding));
    const double fraction = at[j] - std::floor(at[j]);
    if (site.options.mode == GridSampleMode::kNearest && std::abs(fraction - 0.5) <= 2 * tolerance)
      return fmt::format(
          "{} {} is at pixel {:.4g}, halfway between two: GridSample rounds that to "
          "even, Resize does not",
          name, j, at[j]);
  }
  return {};
}

std::string plan_resize(const GridSampleNode& site, const std::vector<GridLines>& lines,
                        ResizePlan& plan) {
  if (site.batch < 0 || site.channels < 0)
    return fmt::format("Resize needs the number of images and channels of '{}'", site.value);
  if (lines.size() > 1) return "the images have different grids: Resize has one for all";
  const bool align = site.options.align_corners;
  const std::vector<double> x = pixels(lines[0].x, site.width, align),
                            y = pixels(lines[0].y, site.height, align);
  if (std::string why = border_reason(site, "column", x, site.width); !why.empty()) return why;
  if (std::string why = border_reason(site, "row", y, site.height); !why.empty()) return why;
  std::string missing;
  for (const ResizeRule rule : {ResizeRule::kHalfPixel, ResizeRule::kAlignCorners}) {
    const auto across = find_resize(x, site.width, rule), down = find_resize(y, site.height, rule);
    if (across && down) {
      plan = {rule, *across, *down};
      return {};
    }
    missing = across ? "rows" : "columns";
  }
  return fmt::format(
      "its {} are not at pixels that a Resize of a part of the image has: unevenly "
      "spaced, falling, or at no whole multiple",
      missing);
}

void write_resize(Rewriter& r, SiteWriter& w, const GridSampleNode& site, const ResizePlan& plan) {
  // The last node takes the name of the output.
  struct Step {
    const char* op;
    std::vector<std::string> more;
  };
  std::vector<Step> steps;
  const auto slice = [&](std::int64_t y0, std::int64_t rows, std::int64_t x0,
                         std::int64_t columns) {
    steps.push_back(
        {"Slice",
         {w.integers({y0, x0}), w.integers({y0 + rows, x0 + columns}), w.integers({2, 3})}});
  };
  const auto &x = plan.x, &y = plan.y;
  if (x.in != site.width || y.in != site.height) slice(y.begin, y.in, x.begin, x.in);
  if (!x.identity() || !y.identity())
    steps.push_back({"Resize", {"", "", w.integers({site.batch, site.channels, y.out, x.out})}});
  if (x.out != site.out_width || y.out != site.out_height)
    slice(y.skip, site.out_height, x.skip, site.out_width);
  if (steps.empty()) steps.push_back({"Identity", {}});
  std::string at = site.value;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::vector<std::string> inputs = {at};
    inputs.insert(inputs.end(), steps[i].more.begin(), steps[i].more.end());
    const bool last = i + 1 == steps.size();
    const std::string out = last ? site.output : w.fresh(steps[i].op);
    onnx::NodeProto node = make_node(steps[i].op, inputs, {out});
    if (std::string_view(steps[i].op) == "Resize") {
      set_attribute(node, "mode", site.linear() ? "linear" : "nearest");
      set_attribute(node, "coordinate_transformation_mode",
                    plan.rule == ResizeRule::kHalfPixel ? "half_pixel" : "align_corners");
      if (!site.linear()) set_attribute(node, "nearest_mode", "round_prefer_floor");
    }
    if (last)
      r.replace(site.node, std::move(node));
    else
      w.insert(std::move(node));
    at = out;
  }
}

// [images, 1, outputs, size] or, transposed, [images, 1, size, outputs].
Tensor weights(const GridSampleNode& site, const std::vector<GridLines>& lines, bool columns) {
  const std::int64_t size = columns ? site.width : site.height;
  const std::int64_t outputs = columns ? site.out_width : site.out_height;
  Tensor made(DType::kFloat32,
              {std::ssize(lines), 1, columns ? size : outputs, columns ? outputs : size});
  float* out = made.mutable_data<float>();
  for (const GridLines& image : lines) {
    const std::vector<float>& g = columns ? image.x : image.y;
    for (std::int64_t j = 0; j < outputs; ++j) {
      const AxisTapValues taps = axis_tap_values(site, g[static_cast<std::size_t>(j)], size);
      for (int k = 0; k < 2; ++k)
        out[columns ? taps.index[k] * outputs + j : j * size + taps.index[k]] += taps.weight[k];
    }
    out += size * outputs;
  }
  return made;
}

void write_matmul(SiteWriter& w, const GridSampleNode& site, const std::vector<GridLines>& lines) {
  const std::string a = w.constant("rows", weights(site, lines, false)),
                    b = w.constant("columns", weights(site, lines, true));
  const std::int64_t rows_first =
      site.out_height * site.height * site.width + site.out_height * site.width * site.out_width;
  const std::int64_t columns_first =
      site.height * site.width * site.out_width + site.out_height * site.height * site.out_width;
  if (rows_first < columns_first)
    w.finish("MatMul", {w.add("MatMul", {a, site.value}), b});
  else
    w.finish("MatMul", {a, w.add("MatMul", {site.value, b})});
}

}  // namespace

namespace passes {

Result<PassOutcome> replace_grid_sample_resize(Model& model, const PassOptions& options) {
  TENONNX_ASSIGN_OR_RETURN(const Form form, form_option(options));
  Rewriter r(model);
  StaticGrids grids(model);
  TENONNX_RETURN_IF_ERROR(for_each_grid_sample(r, [&](GridSampleNode& site) -> std::string {
    std::string why;
    const Tensor* grid = grids.find(r, site, why);
    if (grid == nullptr) return why;
    if (site.options.mode == GridSampleMode::kCubic)
      return "its mode is cubic: only linear and nearest are replaced";
    std::vector<GridLines> lines(static_cast<std::size_t>(images_with_own_grid(*grid)));
    for (std::size_t n = 0; n < lines.size(); ++n)
      if (why = grid_lines(site, *grid, static_cast<std::int64_t>(n), lines[n]); !why.empty())
        return why;
    ResizePlan plan;
    if (form != Form::kMatMul) why = plan_resize(site, lines, plan);
    if (form == Form::kResize && !why.empty()) return why;
    if (!r.begin({site.node})) return {};
    SiteWriter w(r, site.node);
    std::string what;
    if (form == Form::kMatMul || !why.empty()) {
      write_matmul(w, site, lines);
      what = fmt::format("two MatMul by constants{}",
                         why.empty() ? "" : fmt::format(" (no Resize: {})", why));
    } else {
      write_resize(r, w, site, plan);
      what = fmt::format("Resize, {}: rows {} to {} of {} as {}, columns {} to {} of {} as {}",
                         plan.rule == ResizeRule::kHalfPixel ? "half_pixel" : "align_corners",
                         plan.y.begin, plan.y.begin + plan.y.in - 1, site.height, plan.y.out,
                         plan.x.begin, plan.x.begin + plan.x.in - 1, site.width, plan.x.out);
    }
    r.apply(site.node, what);
    return {};
  }));
  return r.finish();
}

}  // namespace passes
}  // namespace tenonnx
