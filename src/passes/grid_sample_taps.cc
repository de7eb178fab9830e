// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/grid_sample_taps.h"

#include <algorithm>

namespace tenonnx {
namespace {

// Beyond it a float32 coordinate tells no pixels apart; ONNX Runtime's reflection is undefined from
// 2^31 periods on.
constexpr double kFarthest = 1 << 30;

class AxisWriter {
 public:
  AxisWriter(SiteWriter& w, const GridSampleNode& site, std::int64_t size)
      : w_(w), options_(site.options), size_(static_cast<double>(size)) {}

  // x where low < x < high, else `otherwise`: no comparison holds for NaN.
  std::string between(const std::string& x, double low, double high, double otherwise) {
    const std::string above = w_.add("Greater", {x, w_.scalar(low)});
    const std::string below = w_.add("Less", {x, w_.scalar(high)});
    return w_.add("Where", {w_.add("And", {above, below}), x, w_.scalar(otherwise)});
  }

  std::string clip(const std::string& x) {
    return w_.add("Clip", {x, w_.scalar(0), w_.scalar(size_ - 1)});
  }
  std::string at_most(const std::string& x, double most) {
    return w_.add("Min", {x, w_.scalar(most)});
  }

  // The coordinate after padding; for nearest, the rounded one.
  std::string padded(const std::string& at) {
    const bool round = options_.mode == GridSampleMode::kNearest;
    const auto rounded = [&](const std::string& x) { return round ? w_.add("Round", {x}) : x; };
    switch (options_.padding) {
      case GridSamplePadding::kZeros:
        return rounded(between(at, -1, size_, size_));
      case GridSamplePadding::kBorder: {
        const std::string above = w_.add("Greater", {at, w_.scalar(0)});
        const std::string low = w_.add("Where", {above, at, w_.scalar(0)});
        return rounded(at_most(low, size_ - 1));
      }
      case GridSamplePadding::kReflection:
        return clip(folded(rounded(between(at, -kFarthest, kFarthest, 0))));
    }
    return at;
  }

 private:
  // span - |(|x - least| mod 2 span) - span| + least
  std::string folded(const std::string& x) {
    const bool align = options_.align_corners;
    const double least = align ? 0 : -0.5, span = align ? size_ - 1 : size_;
    if (span == 0) return w_.add("Mul", {x, w_.scalar(0)});
    const std::string from = w_.add("Abs", {align ? x : w_.add("Sub", {x, w_.scalar(least)})});
    const std::string periods = w_.add("Floor", {w_.add("Div", {from, w_.scalar(2 * span)})});
    const std::string rest = w_.add("Sub", {from, w_.add("Mul", {periods, w_.scalar(2 * span)})});
    const std::string turned = w_.add("Abs", {w_.add("Sub", {rest, w_.scalar(span)})});
    // span + least is a half or whole number of at most 2^24 halves: one exact constant.
    return w_.add("Sub", {w_.scalar(span + least), turned});
  }

  SiteWriter& w_;
  const GridSampleOptions& options_;
  double size_;
};

}  // namespace

AxisTaps axis_taps(SiteWriter& w, const GridSampleNode& site, const std::string& at,
                   std::int64_t size, ZeroForm zeros) {
  AxisWriter axis(w, site, size);
  const auto last = static_cast<double>(size - 1);
  const std::string one = w.scalar(1);
  const std::string x = axis.padded(at);
  AxisTaps taps;
  if (site.options.mode == GridSampleMode::kNearest) {
    taps.index[0] = x;
    if (!site.zeros()) return taps;
    if (zeros == ZeroForm::kBorder) {
      taps.index[0] = w.add("Add", {x, one});
      return taps;
    }
    taps.index[0] = axis.clip(x);
    taps.inside = w.add("Equal", {taps.index[0], x});
    return taps;
  }
  const std::string x0 = w.add("Floor", {x}), x1 = w.add("Add", {x0, one});
  taps.weight[0] = w.add("Sub", {x1, x});
  taps.weight[1] = w.add("Sub", {x, x0});
  if (!site.zeros()) {
    taps.index[0] = x0;
    taps.index[1] = axis.at_most(x1, last);
    return taps;
  }
  if (zeros == ZeroForm::kBorder) {  // pixel i is column i + 1 there
    taps.index[0] = x1;
    taps.index[1] = axis.at_most(w.add("Add", {x1, one}), last + 2);
    return taps;
  }
  // x lies in (-1, size]: x0 in -1..size, x1 in 0..size + 1.
  taps.index[0] = axis.clip(x0);
  taps.index[1] = axis.at_most(x1, last);
  const std::string neighbours[2] = {x0, x1};
  for (int k = 0; k < 2; ++k) {
    const std::string inside = w.add("Equal", {taps.index[k], neighbours[k]});
    taps.weight[k] = w.add("Where", {inside, taps.weight[k], w.scalar(0)});
  }
  return taps;
}

std::string surround_with_zeros(SiteWriter& w, const GridSampleNode& site) {
  const auto zeros = [&](std::int64_t height, std::int64_t width) {
    Tensor tensor(DType::kFloat32, {site.batch, site.channels, height, width});
    std::fill_n(tensor.mutable_data<float>(), tensor.size(), 0.0F);
    return w.constant("zeros", tensor);
  };
  const std::string columns = zeros(site.height, 1), rows = zeros(1, site.width + 2);
  const std::string wide = w.add("Concat", {columns, site.value, columns}, {{"axis", 3}});
  return w.add("Concat", {rows, wide, rows}, {{"axis", 2}});
}

}  // namespace tenonnx
