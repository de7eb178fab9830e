// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The bound of a sampling kernel: chunks of `channels` floats at offsets that are known before, one
// multiply-add each, and nothing else. Called from bench_kernels.py by ctypes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gather_bound.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace tenonnx {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Four chunks in flight hide the latency of the multiply-add. Vectors of at most 8 lanes, as 24
// channels are no multiple of 16.
float gather(const float* values, const std::int32_t* offsets, const float* weights,
             std::int64_t count, std::int64_t channels) {
  const auto run = [=](auto d) HWY_ATTR {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    auto a = hn::Zero(d), b = a, c = a, e = a;
    for (std::int64_t i = 0; i + 4 <= count; i += 4) {
      const float *p = values + offsets[i], *q = values + offsets[i + 1],
                  *r = values + offsets[i + 2], *s = values + offsets[i + 3];
      const auto wp = hn::Set(d, weights[i]), wq = hn::Set(d, weights[i + 1]),
                 wr = hn::Set(d, weights[i + 2]), ws = hn::Set(d, weights[i + 3]);
      for (std::int64_t k = 0; k < channels; k += lanes) {
        a = hn::MulAdd(hn::LoadU(d, p + k), wp, a);
        b = hn::MulAdd(hn::LoadU(d, q + k), wq, b);
        c = hn::MulAdd(hn::LoadU(d, r + k), wr, c);
        e = hn::MulAdd(hn::LoadU(d, s + k), ws, e);
      }
    }
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  };
  const hn::ScalableTag<float> widest;
  if (channels % static_cast<std::int64_t>(hn::Lanes(widest)) == 0) return run(widest);
  const hn::CappedTag<float, 8> eight;
  if (channels % static_cast<std::int64_t>(hn::Lanes(eight)) == 0) return run(eight);
  return run(hn::CappedTag<float, 1>());
}

const char* target() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace tenonnx
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenonnx {
HWY_EXPORT(gather);
HWY_EXPORT(target);
}  // namespace tenonnx

extern "C" {
__attribute__((visibility("default"))) float tenonnx_gather_bound(const float* values,
                                                                  const std::int32_t* offsets,
                                                                  const float* weights,
                                                                  std::int64_t count,
                                                                  std::int64_t channels) {
  return HWY_DYNAMIC_DISPATCH(tenonnx::gather)(values, offsets, weights, count, channels);
}
__attribute__((visibility("default"))) const char* tenonnx_instruction_set() {
  return HWY_DYNAMIC_DISPATCH(tenonnx::target)();
}
}
#endif  // HWY_ONCE
