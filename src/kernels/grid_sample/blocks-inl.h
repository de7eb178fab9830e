// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Points of planes by blocks of Lanes(F()) channels: a block is copied to channels last, then one
// load is all channels of a tap, and squares of points and channels are transposed in registers on
// their way out. For many points, and for many taps. Included once for each instruction set.
#if defined(TENONNX_KERNELS_GRID_SAMPLE_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENONNX_KERNELS_GRID_SAMPLE_BLOCKS_INL_H
#undef TENONNX_KERNELS_GRID_SAMPLE_BLOCKS_INL_H
#else
#define TENONNX_KERNELS_GRID_SAMPLE_BLOCKS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "kernels/grid_sample/taps-inl.h"
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenonnx::HWY_NAMESPACE {
namespace grid_sample_blocks {
namespace hn = hwy::HWY_NAMESPACE;
using namespace grid_sample_taps;

// `channels` (at most kLanes) planes to [pixels + 1, kLanes]; missing channels and the last pixel,
// which stands for what is not sampled, are 0.
template <typename T>
void pack_block(const T* HWY_RESTRICT planes, std::int64_t pixels, std::int64_t channels,
                float* HWY_RESTRICT to) {
  const F d;
  std::int64_t p = 0;
  for (; p + kLanes <= pixels; p += kLanes) {
    VF rows[kLanes];
    HWY_UNROLL(16)
    for (std::int64_t i = 0; i < kLanes; ++i)
      rows[i] = i < channels ? load(d, planes + i * pixels + p) : hn::Zero(d);
    transpose_square(rows);
    HWY_UNROLL(16)
    for (std::int64_t i = 0; i < kLanes; ++i) hn::Store(rows[i], d, to + (p + i) * kLanes);
  }
  for (; p < pixels; ++p)
    for (std::int64_t i = 0; i < kLanes; ++i)
      to[p * kLanes + i] = i < channels ? to_float(planes[i * pixels + p]) : 0;
  hn::Store(hn::Zero(d), d, to + pixels * kLanes);
}

// All channels of a block at lane `i` of a plan.
template <class Plan>
HWY_INLINE VF sample_block(const float* HWY_RESTRICT block, const std::int32_t* HWY_RESTRICT plan,
                           std::int64_t i) {
  const F d;
  const auto* weights = reinterpret_cast<const float*>(plan + Plan::kTaps * kLanes);
  auto sum = hn::Zero(d);
  HWY_UNROLL(8)
  for (int tap = 0; tap < Plan::kTaps; ++tap) {
    const float* pixel = block + std::int64_t{plan[tap * kLanes + i]} * kLanes;
    sum = hn::MulAdd(hn::Load(d, pixel), hn::Set(d, weights[tap * kLanes + i]), sum);
  }
  return sum;
}

template <typename T>
HWY_INLINE void stream(F d, VF value, T* HWY_RESTRICT to) {
  if constexpr (std::is_same_v<T, float>)
    hn::Stream(value, d, to);
  else
    store(d, value, to);
}

// `count` points, of which the first vector of plans has `first`. kStream: each plane of the output
// is aligned to a vector from the second one on, and goes around the caches.
template <class Plan, bool kStream, typename T>
void sample_blocks(const float* HWY_RESTRICT block, std::int64_t channels,
                   const std::int32_t* HWY_RESTRICT plan, std::int64_t first, std::int64_t count,
                   T* HWY_RESTRICT out, std::int64_t out_stride) {
  const F d;
  std::int64_t here = std::min(first, count);
  for (std::int64_t p = 0; p < count; p += here, here = std::min(kLanes, count - p)) {
    VF rows[kLanes];
    HWY_UNROLL(16)
    for (std::int64_t i = 0; i < kLanes; ++i) rows[i] = sample_block<Plan>(block, plan, i);
    plan += Plan::kNumbers;
    transpose_square(rows);
    if (here == kLanes && channels == kLanes) {
      HWY_UNROLL(16)
      for (std::int64_t c = 0; c < kLanes; ++c) {
        if constexpr (kStream)
          stream(d, rows[c], out + c * out_stride + p);
        else
          store(d, rows[c], out + c * out_stride + p);
      }
      continue;
    }
    HWY_ALIGN T square[kLanes][kLanes];
    for (std::int64_t c = 0; c < kLanes; ++c) store(d, rows[c], square[c]);
    for (std::int64_t c = 0; c < channels; ++c)
      std::copy(square[c], square[c] + here, out + c * out_stride + p);
  }
}

}  // namespace grid_sample_blocks
}  // namespace tenonnx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
