// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// fold_static_grid: a grid that does not depend on the inputs becomes constant indices and weights.
//
// before: grid = AffineGrid(theta, size), or stored, or computed from constants in any other way
//         y = GridSample(value, grid)
// after:  y = sum over the four neighbours t of weight_t * Gather(value, index_t)
//
// weight_t (float32) and index_t (int32) are initializers; nearest has one neighbour and no weight.
// What is not sampled, a neighbour outside (zeros) or of weight 0, is read from one pixel of zeros
// behind the value: no NaN or Inf of it reaches y. Where everything is sampled there is no such
// pixel. Nothing is computed on the device but products and sums: the floor, the clamps and the
// index arithmetic, and with them what a float16 cannot count, are gone.
//
// Option form:
//   rows      [N*H*W, C], Gather on axis 0: copies of C neighbours in memory, two Transposes
//   columns   [N, C, H*W], Gather on axis 2: no Transpose; all images have the same grid
//   operator  tenonnx.StaticSample, form taps: on a CPU; needs libtenonnx_ops.so
//   auto      (default) rows, which one thread of ONNX Runtime's CPU computes 1.7 times as fast as
//             columns ([1,256,16,44] to 200 x 200); columns where rows would not fit int32
// rows and columns need the number of images, and the number of channels where something is not
// sampled.
//
// Class algebraic. rows and columns multiply and add as ONNX Runtime 1.29 does: bit for bit its own
// for nearest, and for linear with zeros without align_corners, on finite values and but for the
// sign of zeros (replace_grid_sample_gather). The operator adds likewise, but with FMA.
// Refuses: cubic; a grid that depends on an input, by its values or by a shape that is not folded;
// random grids; what read_grid_sample() refuses.
#include <string>
#include <vector>

#include "base/status.h"
#include "passes/options.h"
#include "passes/passes.h"
#include "passes/static_grid.h"

namespace tenonnx {
namespace {

enum class Form { kAuto, kRows, kColumns, kOperator };

Result<Form> form_option(const PassOptions& options) {
  TENONNX_RETURN_IF_ERROR(only_options("fold_static_grid", options, {"form"}));
  const auto it = options.find("form");
  if (it == options.end() || it->second == "auto") return Form::kAuto;
  if (it->second == "rows") return Form::kRows;
  if (it->second == "columns") return Form::kColumns;
  if (it->second == "operator") return Form::kOperator;
  return InvalidArgument("fold_static_grid: form must be auto, rows, columns or operator, got '{}'",
                         it->second);
}

// Why the form cannot be written.
std::string missing(Form form, const GridSampleNode& site, const StaticTaps& taps) {
  if (form == Form::kOperator) {
    // StaticGrid::check, which the operator loads with.
    constexpr std::int64_t kMostPixels = std::int64_t{1} << 22;
    if (std::max(site.height, site.width) < kMostPixels) return {};
    return fmt::format(
        "StaticSample takes images of less than 2^22 pixels along an axis, '{}' has {}", site.value,
        std::max(site.height, site.width));
  }
  if (form == Form::kColumns && taps.images != 1)
    return "form columns has one grid for all images: theirs differ, take rows";
  if (form == Form::kRows && site.batch * site.height * site.width >= (std::int64_t{1} << 31) - 1)
    return fmt::format("'{}' has more pixels than int32 counts", site.value);
  if (taps.unsampled > 0 && site.channels < 0)
    return fmt::format(
        "what is outside is read from zeros, which need the number of channels of "
        "'{}': fix_input_shapes first",
        site.value);
  return {};
}

class Writer {
 public:
  Writer(Rewriter& r, const GridSampleNode& site, const StaticTaps& taps)
      : w_(r, site.node), site_(site), taps_(taps) {}

  void rows() {
    const std::int64_t pixels = site_.height * site_.width;
    std::string source =
        w_.reshape(w_.transpose(site_.value, {0, 2, 3, 1}), {site_.batch * pixels, -1});
    if (taps_.unsampled > 0) source = with_zeros(source, {1, site_.channels}, 0);
    std::string sum;
    for (std::int64_t t = 0; t < taps_.taps; ++t)
      sum = add(sum, weighted(w_.add("Gather", {source, indices(t, true)}, {{"axis", 0}}),
                              weights(t, site_.batch, true)));
    w_.finish_images(w_.transpose(w_.reshape(sum, {site_.batch, taps_.points, -1}), {0, 2, 1}),
                     site_);
  }

  void columns() {
    std::string source = w_.reshape(site_.value, {0, 0, site_.height * site_.width});
    if (taps_.unsampled > 0) source = with_zeros(source, {site_.batch, site_.channels, 1}, 2);
    std::string sum;
    for (std::int64_t t = 0; t < taps_.taps; ++t)
      sum = add(sum, weighted(w_.add("Gather", {source, indices(t, false)}, {{"axis", 2}}),
                              weights(t, 1, false)));
    w_.finish_images(sum, site_);
  }

  onnx::NodeProto op() {
    const Shape shape = {taps_.images, taps_.points, taps_.taps};
    onnx::NodeProto node = static_sample_node(
        site_,
        {site_.value, w_.constant("indices", Tensor::from(DType::kInt32, shape, taps_.index)),
         w_.constant("weights", Tensor::from(DType::kFloat32, shape, taps_.weight))},
        "taps");
    set_attribute(node, "taps", taps_.taps);
    return node;
  }

 private:
  std::string add(const std::string& sum, const std::string& part) {
    return sum.empty() ? part : w_.add("Add", {sum, part});
  }
  std::string weighted(const std::string& pixels, const std::string& weights) {
    return taps_.taps == 1 ? pixels : w_.add("Mul", {weights, pixels});
  }
  std::string with_zeros(const std::string& source, const Shape& shape, std::int64_t axis) {
    return w_.add("Concat", {source, w_.constant("zeros", Tensor(DType::kFloat32, shape))},
                  {{"axis", axis}});
  }
  // Of tap t, for all images one after the other or for the one that all share.
  std::string indices(std::int64_t t, bool every_image) {
    const std::int64_t images = every_image ? site_.batch : 1, pixels = site_.height * site_.width;
    Tensor made(DType::kInt32, {images * taps_.points});
    auto* out = made.mutable_data<std::int32_t>();
    for (std::int64_t n = 0; n < images; ++n)
      for (std::int64_t p = 0; p < taps_.points; ++p) {
        const std::int32_t index = taps_.index[at(n, p, t)];
        *out++ = static_cast<std::int32_t>(index < 0 ? images * pixels : n * pixels + index);
      }
    return w_.constant("indices", made);
  }
  std::string weights(std::int64_t t, std::int64_t images, bool column) {
    if (taps_.taps == 1) return {};
    const std::int64_t count = images * taps_.points;
    Tensor made(DType::kFloat32, column ? Shape{count, 1} : Shape{count});
    for (std::int64_t i = 0; i < count; ++i)
      made.mutable_data<float>()[i] = taps_.weight[at(i / taps_.points, i % taps_.points, t)];
    return w_.constant("weights", made);
  }
  std::size_t at(std::int64_t n, std::int64_t p, std::int64_t t) const {
    return static_cast<std::size_t>(((taps_.images == 1 ? 0 : n) * taps_.points + p) * taps_.taps +
                                    t);
  }

  SiteWriter w_;
  const GridSampleNode& site_;
  const StaticTaps& taps_;
};

}  // namespace

namespace passes {

Result<PassOutcome> fold_static_grid(Model& model, const PassOptions& options) {
  TENONNX_ASSIGN_OR_RETURN(const Form wanted, form_option(options));
  Rewriter r(model);
  StaticGrids grids(model);
  std::vector<GridSampleNode> operators;
  TENONNX_RETURN_IF_ERROR(for_each_grid_sample(r, [&](GridSampleNode& site) -> std::string {
    std::string why;
    const Tensor* grid = grids.find(r, site, why);
    if (grid == nullptr) return why;
    if (site.options.mode == GridSampleMode::kCubic)
      return "its mode is cubic: sixteen neighbours are not written as Gather";
    const StaticTaps taps = static_taps(site, *grid);
    Form form = wanted;
    if (form == Form::kAuto)
      form = missing(Form::kRows, site, taps).empty() ? Form::kRows : Form::kColumns;
    if (why = missing(form, site, taps); !why.empty()) return why;
    if (!r.begin({site.node})) return {};
    Writer writer(r, site, taps);
    if (form == Form::kRows) writer.rows();
    if (form == Form::kColumns) writer.columns();
    if (form == Form::kOperator) {
      r.replace(site.node, writer.op());
      operators.push_back(site);
    }
    constexpr const char* kNames[] = {"", "rows", "columns", "StaticSample"};
    const std::int64_t all = std::ssize(taps.index);
    r.apply(site.node,
            fmt::format("{} points of {} x {} pixels, {} of {} neighbours not sampled, as {}",
                        taps.images * taps.points, site.height, site.width, taps.unsampled, all,
                        kNames[static_cast<int>(form)]));
    return {};
  }));
  PassOutcome outcome = r.finish();
  declare_static_samples(model, operators);
  return outcome;
}

}  // namespace passes
}  // namespace tenonnx
