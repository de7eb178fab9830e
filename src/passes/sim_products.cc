// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/sim_products.h"

#include <cmath>

#include "passes/sim_round.h"

namespace tenonnx {
namespace {

// What has been added so far, in double precision: finite sums are exact enough for float16.
class Sum {
 public:
  explicit Sum(bool keep_sign) : keep_sign_(keep_sign) {}
  // False once a NaN is the result.
  bool add(float activation, float weight) {
    if (weight == 0) return true;
    if (std::isnan(weight)) return set(weight);
    if (std::isnan(activation)) return set(activation);
    sum_ += static_cast<double>(activation) * static_cast<double>(weight);
    return true;
  }
  double value() const {
    if (found_) return nan_;
    if (std::isnan(sum_)) return kInvalid;
    return std::abs(sum_) < kInfinite ? sum_ : std::copysign(65536.0, sum_);
  }

 private:
  static constexpr double kInfinite = 65520;  // rounds to infinity
  static constexpr double kInvalid = -98304;  // the bits of x86's default NaN
  bool set(float nan) {
    found_ = true;
    nan_ = keep_sign_ ? pattern_of(nan) : std::abs(pattern_of(nan));
    return false;
  }
  bool keep_sign_, found_ = false;
  double sum_ = 0, nan_ = 0;
};

// 1, 0, 3, 2, ...: the last of an odd number stays.
std::int64_t paired(std::int64_t i, std::int64_t count) {
  const std::int64_t other = i ^ 1;
  return other < count ? other : i;
}

std::int64_t elements(const Shape& shape, std::size_t first, std::size_t last) {
  std::int64_t count = 1;
  for (std::size_t i = first; i < last; ++i) count *= shape[i];
  return count;
}

double matrix_value(const ProductShape& s, const float* a, const float* b, std::int64_t index) {
  const std::size_t ra = s.a.size(), rb = s.b.size(), ry = s.y.size();
  const std::int64_t rows = s.y[ry - 2], columns = s.y[ry - 1];
  const std::int64_t depth = s.trans_a ? s.a[ra - 2] : s.a[ra - 1];
  const std::int64_t batch = index / (rows * columns), row = index / columns % rows,
                     column = index % columns;
  const float* pa = a + (ra > 2 ? batch * rows * depth : 0);
  const float* pb = b + (rb > 2 ? batch * depth * columns : 0);
  Sum sum(false);
  for (std::int64_t i = 0; i < depth; ++i) {
    const std::int64_t k = paired(i, depth);
    const float activation = s.trans_a ? pa[k * rows + row] : pa[row * depth + k];
    const float weight = s.trans_b ? pb[column * depth + k] : pb[k * columns + column];
    if (!sum.add(activation, weight)) break;
  }
  return sum.value();
}

double conv_value(const ProductShape& s, const float* a, const float* b, std::int64_t index) {
  const std::int64_t outputs = s.y[1], height = s.y[2], width = s.y[3];
  const std::int64_t channels = s.b[1], kernel_h = s.b[2], kernel_w = s.b[3];
  const std::int64_t x = index % width, y = index / width % height,
                     output = index / (width * height) % outputs,
                     image = index / (width * height * outputs);
  const std::int64_t first = output / (outputs / s.group) * channels;
  const bool depthwise = s.group > 1 && channels == 1;
  Sum sum(depthwise);
  for (std::int64_t i = 0; i < kernel_h * kernel_w; ++i) {
    const std::int64_t row = i / kernel_w, kx = i % kernel_w;
    const std::int64_t ky = depthwise ? kernel_h - 1 - row : row;
    const std::int64_t at_y = y * s.strides[0] - s.pads[0] + ky * s.dilations[0];
    const std::int64_t at_x = x * s.strides[1] - s.pads[1] + kx * s.dilations[1];
    if (at_y < 0 || at_y >= s.a[2] || at_x < 0 || at_x >= s.a[3]) continue;
    for (std::int64_t j = 0; j < channels; ++j) {
      const std::int64_t c = paired(j, channels);
      const float activation = a[((image * s.a[1] + first + c) * s.a[2] + at_y) * s.a[3] + at_x];
      const float weight = b[((output * channels + c) * kernel_h + ky) * kernel_w + kx];
      if (!sum.add(activation, weight)) return sum.value();
    }
  }
  return sum.value();
}

// The element of an operand that broadcasting puts at `index` of the result.
std::int64_t broadcast_index(const Shape& operand, const Shape& result, std::int64_t index) {
  std::int64_t at = 0, step = 1;
  for (std::size_t i = 0; i < operand.size(); ++i) {
    const std::int64_t size = operand[operand.size() - 1 - i];
    const std::int64_t place = index % result[result.size() - 1 - i];
    index /= result[result.size() - 1 - i];
    at += size == 1 ? 0 : place * step;
    step *= size;
  }
  return at;
}

double sum_value(const ProductShape& s, const float* a, const float* b, std::int64_t index) {
  Sum sum(true);
  if (sum.add(b[broadcast_index(s.b, s.y, index)], 1))
    sum.add(a[broadcast_index(s.a, s.y, index)], 1);
  return sum.value();
}

}  // namespace

bool is_known(const ProductShape& s) {
  const std::size_t ra = s.a.size(), rb = s.b.size(), ry = s.y.size();
  if (s.kind == ProductShape::Kind::kConv)
    return ra == 4 && rb == 4 && ry == 4 && s.strides.size() == 2 && s.pads.size() == 4 &&
           s.dilations.size() == 2;
  if (s.kind == ProductShape::Kind::kSum) return ra <= ry && rb <= ry;
  if (ra < 2 || rb < 2 || ry < 2) return false;
  const std::int64_t batches = elements(s.y, 0, ry - 2);
  return (ra == 2 || elements(s.a, 0, ra - 2) == batches) &&
         (rb == 2 || elements(s.b, 0, rb - 2) == batches);
}

double product_value(const ProductShape& shape, const float* a, const float* b,
                     std::int64_t index) {
  switch (shape.kind) {
    case ProductShape::Kind::kConv:
      return conv_value(shape, a, b, index);
    case ProductShape::Kind::kSum:
      return sum_value(shape, a, b, index);
    case ProductShape::Kind::kMatMul:
      break;
  }
  return matrix_value(shape, a, b, index);
}

}  // namespace tenonnx
