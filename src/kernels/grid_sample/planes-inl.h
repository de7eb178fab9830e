// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Points of float32 planes, one channel after the other: the taps of a tile of points are made
// once, each channel reads them. Nothing is copied, so this is the way for few points on many
// pixels. Included once for each instruction set.
#if defined(TENONNX_KERNELS_GRID_SAMPLE_PLANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENONNX_KERNELS_GRID_SAMPLE_PLANES_INL_H
#undef TENONNX_KERNELS_GRID_SAMPLE_PLANES_INL_H
#else
#define TENONNX_KERNELS_GRID_SAMPLE_PLANES_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/grid_sample/taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenonnx::HWY_NAMESPACE {
namespace grid_sample_planes {
namespace hn = hwy::HWY_NAMESPACE;
using namespace grid_sample_taps;

#if HWY_TARGET != HWY_SCALAR
// Two neighbours each at Lanes(d) / 2 offsets.
template <class D>
HWY_INLINE hn::Vec<D> load_pairs(D d, const float* HWY_RESTRICT plane, const std::int32_t* at) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(D()) == 16) {
    const hn::RepartitionToWide<D> wide;
    const hn::RebindToSigned<decltype(wide)> index;
    const hn::Rebind<std::int32_t, decltype(wide)> narrow;
    const auto bytes = hn::ShiftLeft<2>(hn::PromoteTo(index, hn::Load(narrow, at)));
    return hn::BitCast(d, hn::GatherOffset(wide, reinterpret_cast<const double*>(plane), bytes));
  } else
#endif
      if constexpr (hn::MaxLanes(D()) == 4) {
    const auto pair = [&](std::int32_t offset) {  // 8 bytes at any multiple of 4
      double bits;
      std::memcpy(&bits, plane + offset, sizeof(bits));
      return hn::Set(hn::FixedTag<double, 1>(), bits);
    };
    return hn::BitCast(d, hn::Combine(hn::FixedTag<double, 2>(), pair(at[1]), pair(at[0])));
  } else {
    const hn::Half<D> half;
    const auto low = load_pairs(half, plane, at);
    return hn::Combine(d, load_pairs(half, plane, at + hn::MaxLanes(half) / 2), low);
  }
}

template <int kDimensions>
struct Pairs {
  using Plan = PairPlan<kDimensions>;
  static HWY_INLINE VF sample(const float* HWY_RESTRICT plane,
                              const std::int32_t* HWY_RESTRICT plan) {
    const F d;
    const auto* weights = reinterpret_cast<const float*>(plan + Plan::kRows * kLanes);
    VF sum[2] = {hn::Zero(d), hn::Zero(d)};
    HWY_UNROLL(4)
    for (int row = 0; row < Plan::kRows; ++row) {
      for (int half = 0; half < 2; ++half) {
        const auto weight = hn::Load(d, weights + (2 * row + half) * kLanes);
        const auto value = load_pairs(d, plane, plan + row * kLanes + half * (kLanes / 2));
        // Masked, not multiplied by 0: what is not sampled may be infinite.
        const auto alive = hn::Not(hn::Eq(weight, hn::Zero(d)));
        sum[half] = hn::MulAdd(hn::IfThenElseZero(alive, value), weight, sum[half]);
      }
    }
    return hn::Add(hn::ConcatEven(d, sum[1], sum[0]), hn::ConcatOdd(d, sum[1], sum[0]));
  }
};
#endif

// One number at each of Lanes(d) offsets.
template <class D>
HWY_INLINE hn::Vec<D> load_each(D d, const float* HWY_RESTRICT plane,
                                const std::int32_t* HWY_RESTRICT at) {
#if HWY_TARGET == HWY_AVX2
  // vgatherdps is slower than the loads that it stands for.
  const hn::Half<D> half;
  const auto two = [&](std::int32_t a, std::int32_t b) {
    return hn::InterleaveLower(half, hn::Set(half, plane[a]), hn::Set(half, plane[b]));
  };
  const auto four = [&](const std::int32_t* i) {
    return hn::ConcatLowerLower(half, two(i[2], i[3]), two(i[0], i[1]));
  };
  return hn::Combine(d, four(at + 4), four(at));
#else
  return hn::GatherIndex(d, plane, hn::Load(hn::RebindToSigned<D>(), at));
#endif
}

template <GridSampleMode kMode, int kDimensions>
struct Gathers {
  using Plan = TapPlan<kMode, kDimensions>;
  static HWY_INLINE VF sample(const float* HWY_RESTRICT plane,
                              const std::int32_t* HWY_RESTRICT plan) {
    const F d;
    const auto* weights = reinterpret_cast<const float*>(plan + Plan::kTaps * kLanes);
    auto sum = hn::Zero(d);
    HWY_UNROLL(8)
    for (int tap = 0; tap < Plan::kTaps; ++tap) {
      const auto weight = hn::Load(d, weights + tap * kLanes);
      const auto value = load_each(d, plane, plan + tap * kLanes);
      const auto alive = hn::Not(hn::Eq(weight, hn::Zero(d)));
      sum = hn::MulAdd(hn::IfThenElseZero(alive, value), weight, sum);
    }
    return sum;
  }
};

// `count` points of `channels` planes of `pixels` each; plans: those of the points.
template <class Sample, typename T>
void sample_planes(const float* HWY_RESTRICT planes, std::int64_t pixels, std::int64_t channels,
                   const std::int32_t* HWY_RESTRICT plans, std::int64_t count, T* HWY_RESTRICT out,
                   std::int64_t out_stride) {
  const F d;
  // Where nearly every cache line of a plane is read, the next plane is fetched in its order while
  // this one is sampled (8 to 20 % of the time when planes come from the third cache); for few
  // points on a large plane that would read far more than is needed.
  constexpr std::int64_t kLine = 16;
  const std::int64_t lines = pixels <= kLine * count ? pixels * kLanes / (kLine * count) + 1 : 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    const float* plane = planes + c * pixels;
    const float* next = c + 1 < channels ? plane + pixels : plane;
    T* to = out + c * out_stride;
    const std::int32_t* plan = plans;
    std::int64_t p = 0, ahead = 0;
    for (; p + kLanes <= count; p += kLanes, plan += Sample::Plan::kNumbers) {
      for (const std::int64_t end = ahead + lines * kLine; ahead < end; ahead += kLine)
        __builtin_prefetch(next + std::min(ahead, pixels - 1), 0, 2);
      store(d, Sample::sample(plane, plan), to + p);
    }
    if (p < count) {
      HWY_ALIGN T last[kLanes];
      store(d, Sample::sample(plane, plan), last);
      std::copy(last, last + (count - p), to + p);
    }
  }
}

}  // namespace grid_sample_planes
}  // namespace tenonnx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
