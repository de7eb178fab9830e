// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Points of values with the channels last: one load is many channels of a tap, and no tap is read
// that has no weight. Included once for each instruction set.
#if defined(TENONNX_KERNELS_GRID_SAMPLE_LAST_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENONNX_KERNELS_GRID_SAMPLE_LAST_INL_H
#undef TENONNX_KERNELS_GRID_SAMPLE_LAST_INL_H
#else
#define TENONNX_KERNELS_GRID_SAMPLE_LAST_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/grid_sample/taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenonnx::HWY_NAMESPACE {
namespace grid_sample_last {
namespace hn = hwy::HWY_NAMESPACE;
using namespace grid_sample_taps;

// The taps of one point that have a weight.
template <typename T, int kMost>
struct Alive {
  int count = 0;
  const T* pixel[kMost];
  float weight[kMost];
};

// The last vector overlaps the one before it: channels are at least Lanes(d).
template <class D, class Taps, typename T>
HWY_INLINE void sample_channels(D d, const Taps& taps, std::int64_t channels, T* HWY_RESTRICT out) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t c = 0; c < channels; c += lanes) {
    const std::int64_t at = std::min(c, channels - lanes);
    auto sum = hn::Zero(d);
    for (int i = 0; i < taps.count; ++i)
      sum = hn::MulAdd(load(d, taps.pixel[i] + at), hn::Set(d, taps.weight[i]), sum);
    store(d, sum, out + at);
  }
}

template <class Plan, typename T>
void sample_last(const T* HWY_RESTRICT value, std::int64_t channels,
                 const std::int32_t* HWY_RESTRICT plan, std::int64_t count, T* HWY_RESTRICT out) {
  for (std::int64_t p = 0; p < count; ++p) {
    const std::int32_t* offsets = plan + p / kLanes * Plan::kNumbers + p % kLanes;
    const auto* weights = reinterpret_cast<const float*>(offsets + Plan::kTaps * kLanes);
    Alive<T, Plan::kTaps> taps;
    for (int tap = 0; tap < Plan::kTaps; ++tap) {
      taps.pixel[taps.count] = value + std::int64_t{offsets[tap * kLanes]} * channels;
      taps.weight[taps.count] = weights[tap * kLanes];
      taps.count += weights[tap * kLanes] != 0 ? 1 : 0;
    }
    T* to = out + p * channels;
    if (channels >= kLanes)
      sample_channels(F(), taps, channels, to);
    else if (channels >= 4 && kLanes > 4)
      sample_channels(hn::CappedTag<float, 4>(), taps, channels, to);
    else
      sample_channels(hn::CappedTag<float, 1>(), taps, channels, to);
  }
}

}  // namespace grid_sample_last
}  // namespace tenonnx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
