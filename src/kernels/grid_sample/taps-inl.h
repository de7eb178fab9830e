// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Where a point of the grid samples: along each axis up to 4 pixels with their weights, and from
// the axes together the taps of the point. Included once for each instruction set.
#if defined(TENONNX_KERNELS_GRID_SAMPLE_TAPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENONNX_KERNELS_GRID_SAMPLE_TAPS_INL_H
#undef TENONNX_KERNELS_GRID_SAMPLE_TAPS_INL_H
#else
#define TENONNX_KERNELS_GRID_SAMPLE_TAPS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/grid_sample/grid_sample.h"
#include "kernels/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenonnx::HWY_NAMESPACE {
namespace grid_sample_taps {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using I = hn::Rebind<std::int32_t, F>;
using VF = hn::Vec<F>;
using VI = hn::Vec<I>;
constexpr std::int64_t kLanes = hn::MaxLanes(F());

constexpr int taps_of(GridSampleMode mode) {
  return mode == GridSampleMode::kNearest ? 1 : mode == GridSampleMode::kLinear ? 2 : 4;
}

// One axis of the image.
struct Axis {
  Axis(std::int64_t pixels, const GridSampleOptions& options)
      : padding(options.padding),
        size(static_cast<float>(pixels)),
        last(size - 1),
        scale(options.align_corners ? last : size),
        shift(options.align_corners ? 0.0F : 1.0F),
        least(options.align_corners ? 0.0F : -0.5F),
        period(2 * scale),
        inverse_period(scale > 0 ? 1 / period : 0) {}
  GridSamplePadding padding;
  float size, last, scale, shift;
  float least, period, inverse_period;  // reflection: of least, and the way there and back
};

// A pixel outside, or with weight 0, has the index of a pixel inside and weight 0.
template <int kTaps>
struct AxisTaps {
  HWY_INLINE AxisTaps() {}  // NEON: one that the compiler writes lacks the target's attribute
  VF first;                 // the pixel of tap 0, before it was moved inside
  VI index[kTaps];
  VF weight[kTaps];
};

HWY_INLINE VF pixel_of(const Axis& axis, VF coordinate) {
  const F d;
  const auto from_0 = hn::Add(coordinate, hn::Set(d, 1));
  return hn::Mul(hn::MulSub(from_0, hn::Set(d, axis.scale), hn::Set(d, axis.shift)),
                 hn::Set(d, 0.5F));
}

HWY_INLINE VF inside(const Axis& axis, VF x) {
  const F d;
  return hn::Min(hn::Max(x, hn::Zero(d)), hn::Set(d, axis.last));
}

// Folds x at both ends of the image; no fmod, which has no vector form: the remainder comes from
// one multiplication, and where that is off by one period the same folding mends it.
HWY_INLINE VF reflect(const Axis& axis, VF x) {
  const F d;
  const auto least = hn::Set(d, axis.least), period = hn::Set(d, axis.period);
  const auto from_least = hn::Abs(hn::Sub(x, least));
  const auto periods = hn::Floor(hn::Mul(from_least, hn::Set(d, axis.inverse_period)));
  const auto rest = hn::Abs(hn::NegMulAdd(periods, period, from_least));
  const auto folded = hn::Abs(hn::Min(rest, hn::Sub(period, rest)));
  const auto finite = hn::Le(hn::Abs(x), hn::Set(d, 3.4028234664e38F));
  return hn::IfThenElseZero(finite, inside(axis, hn::Add(least, folded)));
}

// zeros: x itself, but so that it fits an int and is outside when it is not a number.
HWY_INLINE VF pad(const Axis& axis, VF x) {
  const F d;
  if (axis.padding == GridSamplePadding::kReflection) return reflect(axis, x);
  const auto number = hn::Eq(x, x);
  if (axis.padding == GridSamplePadding::kBorder)
    return hn::IfThenElseZero(number, inside(axis, x));
  const auto outside = hn::Set(d, -4);
  const auto near = hn::Min(hn::Max(x, outside), hn::Set(d, axis.size + 3));
  return hn::IfThenElse(number, near, outside);
}

template <int kTaps>
HWY_INLINE void set_tap(const Axis& axis, int k, VF at, VF weight, AxisTaps<kTaps>& taps) {
  [[maybe_unused]] const F d;
  const I di;
  const auto moved = inside(axis, at);
  taps.index[k] = hn::ConvertTo(di, moved);
  taps.weight[k] = hn::IfThenElseZero(hn::Eq(moved, at), weight);
}

template <GridSampleMode kMode>
HWY_INLINE AxisTaps<taps_of(kMode)> axis_taps(const Axis& axis, VF coordinate) {
  [[maybe_unused]] const F d;
  const auto one = hn::Set(d, 1);
  AxisTaps<taps_of(kMode)> taps;
  const auto x = pixel_of(axis, coordinate);
  if constexpr (kMode == GridSampleMode::kNearest) {
    taps.first = hn::Round(pad(axis, x));
    set_tap(axis, 0, taps.first, one, taps);
  } else if constexpr (kMode == GridSampleMode::kLinear) {
    const auto moved = pad(axis, x);
    taps.first = hn::Floor(moved);
    const auto t = hn::Sub(moved, taps.first);
    set_tap(axis, 0, taps.first, hn::Sub(one, t), taps);
    set_tap(axis, 1, hn::Add(taps.first, one), t, taps);
  } else {
    // The neighbours are padded, not the coordinate, unless that is no finite number.
    const auto finite = hn::Le(hn::Abs(x), hn::Set(d, 3.4028234664e38F));
    const auto moved = axis.padding == GridSamplePadding::kZeros
                           ? pad(axis, x)
                           : hn::IfThenElse(finite, x, pad(axis, x));
    const auto floor = hn::Floor(moved);
    const auto t = hn::Sub(moved, floor), u = hn::Sub(one, t);
    taps.first = hn::Sub(floor, one);
    constexpr float kA = -0.75F;
    const auto near = [&](VF s) {  // distance at most 1
      const auto sum = hn::MulSub(hn::Set(d, kA + 2), s, hn::Set(d, kA + 3));
      return hn::MulAdd(hn::Mul(sum, s), s, one);
    };
    // a (s - 1) (s - 2)^2 at the distances 1 + t and 1 + u: 0 at both ends, also when rounded.
    const auto far = hn::Mul(hn::Set(d, kA), hn::Mul(t, u));
    const VF weight[4] = {hn::Mul(far, u), near(t), near(u), hn::Mul(far, t)};
    for (int k = 0; k < 4; ++k) {
      const auto at = hn::Add(taps.first, hn::Set(d, static_cast<float>(k)));
      set_tap(axis, k, axis.padding == GridSamplePadding::kZeros ? at : pad(axis, at), weight[k],
              taps);
    }
  }
  return taps;
}

// The taps of Lanes(F()) points after each other: for each tap a vector of offsets in pixels, then
// for each a vector of weights. A tap with weight 0 has the offset `dead`.
template <GridSampleMode kMode, int kDimensions>
struct TapPlan {
  static constexpr int kAxis = taps_of(kMode);
  static constexpr int kTaps = kDimensions == 3 ? kAxis * kAxis * kAxis : kAxis * kAxis;
  static constexpr std::int64_t kNumbers = 2 * kTaps * kLanes;  // of 4 bytes, for kLanes points

  static HWY_INLINE void make(const Axis (&axes)[3], const VF (&at)[3], std::int32_t dead,
                              std::int32_t* HWY_RESTRICT to) {
    const F d;
    const I di;
    const auto x = axis_taps<kMode>(axes[0], at[0]), y = axis_taps<kMode>(axes[1], at[1]);
    const auto width = hn::Set(di, static_cast<std::int32_t>(axes[0].size));
    const auto plane = hn::Set(
        di, static_cast<std::int32_t>(axes[0].size) * static_cast<std::int32_t>(axes[1].size));
    auto* weights = reinterpret_cast<float*>(to + kTaps * kLanes);
    const auto put = [&](int tap, VI offset, VF weight) {
      const auto alive = hn::RebindMask(di, hn::Not(hn::Eq(weight, hn::Zero(d))));
      hn::Store(hn::IfThenElse(alive, offset, hn::Set(di, dead)), di, to + tap * kLanes);
      hn::Store(weight, d, weights + tap * kLanes);
    };
    if constexpr (kDimensions == 2) {
      for (int j = 0; j < kAxis; ++j)
        for (int i = 0; i < kAxis; ++i)
          put(j * kAxis + i, hn::Add(hn::Mul(y.index[j], width), x.index[i]),
              hn::Mul(y.weight[j], x.weight[i]));
    } else {
      const auto z = axis_taps<kMode>(axes[2], at[2]);
      for (int k = 0; k < kAxis; ++k)
        for (int j = 0; j < kAxis; ++j)
          for (int i = 0; i < kAxis; ++i)
            put((k * kAxis + j) * kAxis + i,
                hn::Add(hn::Add(hn::Mul(z.index[k], plane), hn::Mul(y.index[j], width)),
                        x.index[i]),
                hn::Mul(hn::Mul(z.weight[k], y.weight[j]), x.weight[i]));
    }
  }
};

// The same for linear, where two neighbours in x are read at once (width at least 2): for each row
// a vector of the offsets of its left pixel, then the weights, left and right alternating.
template <int kDimensions>
struct PairPlan {
  static constexpr int kRows = kDimensions == 3 ? 4 : 2;
  static constexpr std::int64_t kNumbers = 3 * kRows * kLanes;

  static HWY_INLINE void make(const Axis (&axes)[3], const VF (&at)[3], std::int32_t /*dead*/,
                              std::int32_t* HWY_RESTRICT to) {
    const F d;
    const I di;
    constexpr auto kLinear = GridSampleMode::kLinear;
    const auto x = axis_taps<kLinear>(axes[0], at[0]), y = axis_taps<kLinear>(axes[1], at[1]);
    // Both pixels of a pair lie inside: at an edge the pair is moved, and its weights with it.
    const auto one = hn::Set(d, 1), last = hn::Set(d, axes[0].last - 1);
    const auto pair = hn::Min(hn::Max(x.first, hn::Zero(d)), last);
    const auto first_is_left = hn::Eq(x.first, pair);
    const auto first_is_right = hn::Eq(x.first, hn::Add(pair, one));
    const auto second_is_left = hn::Eq(hn::Add(x.first, one), pair);
    const auto left =
        hn::IfThenElse(first_is_left, x.weight[0], hn::IfThenElseZero(second_is_left, x.weight[1]));
    const auto right =
        hn::IfThenElse(first_is_left, x.weight[1], hn::IfThenElseZero(first_is_right, x.weight[0]));
    const auto from_left = hn::ConvertTo(di, pair);
    const auto width = hn::Set(di, static_cast<std::int32_t>(axes[0].size));
    auto* weights = reinterpret_cast<float*>(to + kRows * kLanes);
    const auto put = [&](int row, VI offset, VF weight) {
      hn::Store(hn::Add(offset, from_left), di, to + row * kLanes);
      hn::StoreInterleaved2(hn::Mul(weight, left), hn::Mul(weight, right), d,
                            weights + 2 * row * kLanes);
    };
    if constexpr (kDimensions == 2) {
      for (int j = 0; j < 2; ++j) put(j, hn::Mul(y.index[j], width), y.weight[j]);
    } else {
      const auto plane = hn::Set(
          di, static_cast<std::int32_t>(axes[0].size) * static_cast<std::int32_t>(axes[1].size));
      const auto z = axis_taps<kLinear>(axes[2], at[2]);
      for (int k = 0; k < 2; ++k)
        for (int j = 0; j < 2; ++j)
          put(2 * k + j, hn::Add(hn::Mul(z.index[k], plane), hn::Mul(y.index[j], width)),
              hn::Mul(z.weight[k], y.weight[j]));
    }
  }
};

// The plans of `count` points: of `first` (at most kLanes), then of each kLanes. Where points are
// missing the first of their vector is repeated.
template <class Plan, int kDimensions>
void make_plans(const Axis (&axes)[3], const float* HWY_RESTRICT grid, std::int64_t first,
                std::int64_t count, std::int32_t dead, std::int32_t* HWY_RESTRICT to) {
  const F d;
  std::int64_t here = std::min(first, count);
  for (std::int64_t p = 0; p < count; p += here, here = std::min(kLanes, count - p)) {
    VF at[3] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    if (kDimensions == 2 && here == kLanes) {
      hn::LoadInterleaved2(d, grid + 2 * p, at[0], at[1]);
    } else if (kDimensions == 3 && here == kLanes) {
      hn::LoadInterleaved3(d, grid + 3 * p, at[0], at[1], at[2]);
    } else {
      HWY_ALIGN float apart[3][kLanes] = {};
      for (std::int64_t i = 0; i < kLanes; ++i)
        for (int a = 0; a < kDimensions; ++a)
          apart[a][i] = grid[(i < here ? p + i : p) * kDimensions + a];
      for (int a = 0; a < kDimensions; ++a) at[a] = hn::Load(d, apart[a]);
    }
    Plan::make(axes, at, dead, to);
    to += Plan::kNumbers;
  }
}

}  // namespace grid_sample_taps
}  // namespace tenonnx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
