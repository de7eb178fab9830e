// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// NCHW by blocks of Lanes channels: a block is copied to channels last, where one load is all
// channels of a pixel, and squares of points and channels are transposed in registers on their way
// out. Included once for each instruction set.
#if defined(TENONNX_KERNELS_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENONNX_KERNELS_BLOCKS_INL_H
#undef TENONNX_KERNELS_BLOCKS_INL_H
#else
#define TENONNX_KERNELS_BLOCKS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/storage-inl.h"
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenonnx::HWY_NAMESPACE {
namespace blocks {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using VF = hn::Vec<F>;
constexpr std::int64_t kLanes = hn::MaxLanes(F());

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

template <typename T>
HWY_INLINE void stream(F d, VF value, T* HWY_RESTRICT to) {
  if constexpr (std::is_same_v<T, float>)
    hn::Stream(value, d, to);
  else
    store(d, value, to);
}

// Points before the first aligned vector of each plane of an output of `elements` in planes of
// `points`, where it is too large to be found in a cache again (and planes are aligned alike):
// write_block<true> then. Else -1.
template <typename T>
std::int64_t streamed_head(const T* out, std::int64_t points, std::int64_t elements) {
  constexpr std::int64_t kLeastBytes = std::int64_t{1} << 23;
  if (!std::is_same_v<T, float> || points % kLanes != 0 || elements * 4 < kLeastBytes) return -1;
  const auto address = reinterpret_cast<std::uintptr_t>(out);
  if (address % sizeof(float) != 0) return -1;  // no vector of such planes is aligned
  return kLanes - static_cast<std::int64_t>(address / 4 % static_cast<std::uintptr_t>(kLanes));
}

// sample(group, i) are all channels of point i of a group of points: the first group has `first` of
// the `count` points, the others kLanes. kStream: each plane of the output is aligned to a vector
// from the second group on, and goes around the caches.
template <bool kStream, typename T, class Sample>
HWY_INLINE void write_block(std::int64_t channels, std::int64_t first, std::int64_t count,
                            T* HWY_RESTRICT out, std::int64_t out_stride, Sample&& sample) {
  const F d;
  std::int64_t here = std::min(first, count);
  for (std::int64_t p = 0, group = 0; p < count;
       p += here, here = std::min(kLanes, count - p), ++group) {
    VF rows[kLanes];
    if (here == kLanes && channels == kLanes) {
      HWY_UNROLL(16)
      for (std::int64_t i = 0; i < kLanes; ++i) rows[i] = sample(group, i);
      transpose_square(rows);
      HWY_UNROLL(16)
      for (std::int64_t c = 0; c < kLanes; ++c) {
        if constexpr (kStream)
          stream(d, rows[c], out + c * out_stride + p);
        else
          store(d, rows[c], out + c * out_stride + p);
      }
      continue;
    }
    for (std::int64_t i = 0; i < kLanes; ++i) rows[i] = i < here ? sample(group, i) : hn::Zero(d);
    transpose_square(rows);
    HWY_ALIGN T square[kLanes][kLanes];
    for (std::int64_t c = 0; c < kLanes; ++c) store(d, rows[c], square[c]);
    for (std::int64_t c = 0; c < channels; ++c)
      std::copy(square[c], square[c] + here, out + c * out_stride + p);
  }
}

}  // namespace blocks
}  // namespace tenonnx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
