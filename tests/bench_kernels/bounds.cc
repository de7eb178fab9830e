// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a sampling kernel cannot undercut on this machine, each loop with nothing else in it:
//   chunks   reads `channels` contiguous floats at offsets that are known before, and sums them
//   pairs    reads two neighbours in a row (8 bytes) at offsets that are the same for all planes
//   write    writes an output
// Each is there in the widths that the instruction set has; bench_kernels.py takes the fastest of
// them. It loads this library by ctypes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bounds.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace tenonnx {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Chunks of kVectors vectors and, with kTail, half a vector more. Four chunks in flight, each with
// sums of its own, hide the latency of the addition.
template <int kLanes, int kVectors, bool kTail>
float sum_chunks(const float* HWY_RESTRICT values, const std::int32_t* HWY_RESTRICT offsets,
                 std::int64_t count) {
  constexpr int kInFlight = 4;
  const hn::CappedTag<float, kLanes> d;
  const hn::CappedTag<float, (kLanes > 1 ? kLanes / 2 : 1)> half;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> sums[kInFlight][kVectors];
  hn::Vec<decltype(half)> tails[kInFlight];
  for (int c = 0; c < kInFlight; ++c) {
    for (int v = 0; v < kVectors; ++v) sums[c][v] = hn::Zero(d);
    tails[c] = hn::Zero(half);
  }
  const auto add = [&](std::int64_t i, int c) HWY_ATTR {
    const float* from = values + offsets[i];
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v)
      sums[c][v] = hn::Add(sums[c][v], hn::LoadU(d, from + static_cast<std::size_t>(v) * lanes));
    if constexpr (kTail) tails[c] = hn::Add(tails[c], hn::LoadU(half, from + kVectors * lanes));
  };
  std::int64_t i = 0;
  for (; i + kInFlight <= count; i += kInFlight) {
    HWY_UNROLL(4)
    for (int c = 0; c < kInFlight; ++c) add(i + c, c);
  }
  for (; i < count; ++i) add(i, 0);
  float sum = 0;
  for (int c = 0; c < kInFlight; ++c) {
    for (int v = 0; v < kVectors; ++v) sum += hn::GetLane(hn::SumOfLanes(d, sums[c][v]));
    sum += hn::GetLane(hn::SumOfLanes(half, tails[c]));
  }
  return sum;
}

// 0 where this instruction set has no such width for so many channels.
int bound_chunks(const float* values, const std::int32_t* offsets, std::int64_t count,
                 std::int64_t channels, std::int64_t width, float* sum) {
  const auto run = [&](float result) {
    *sum = result;
    return 1;
  };
  if (static_cast<std::int64_t>(hn::Lanes(hn::CappedTag<float, 16>())) < width) return 0;
  if (width == 16 && channels == 32) return run(sum_chunks<16, 2, false>(values, offsets, count));
  if (width == 16 && channels == 24) return run(sum_chunks<16, 1, true>(values, offsets, count));
  if (width == 16 && channels == 16) return run(sum_chunks<16, 1, false>(values, offsets, count));
  if (width == 8 && channels == 32) return run(sum_chunks<8, 4, false>(values, offsets, count));
  if (width == 8 && channels == 24) return run(sum_chunks<8, 3, false>(values, offsets, count));
  if (width == 8 && channels == 16) return run(sum_chunks<8, 2, false>(values, offsets, count));
  if (width == 4 && channels == 32) return run(sum_chunks<4, 8, false>(values, offsets, count));
  if (width == 4 && channels == 24) return run(sum_chunks<4, 6, false>(values, offsets, count));
  if (width == 4 && channels == 16) return run(sum_chunks<4, 4, false>(values, offsets, count));
  return 0;
}

// The pairs of one plane at a time, as NCHW has them. kGather: with the instruction that gathers.
template <bool kGather>
float sum_pairs(const float* HWY_RESTRICT values, std::int64_t planes, std::int64_t plane,
                const std::int32_t* HWY_RESTRICT offsets, std::int64_t count) {
  float sum = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kGather) {
    // A pair is moved as one 8-byte number and added as two floats.
    const hn::ScalableTag<double> d;
    const hn::Rebind<std::int32_t, decltype(d)> d32;
    const hn::RebindToSigned<decltype(d)> d64;
    const hn::Repartition<float, decltype(d)> df;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    auto a = hn::Zero(df), b = a;
    for (std::int64_t p = 0; p < planes; ++p) {
      const float* from = values + p * plane;
      const auto load = [&](std::int64_t i) HWY_ATTR {
        const auto bytes = hn::ShiftLeft<2>(hn::PromoteTo(d64, hn::LoadU(d32, offsets + i)));
        return hn::BitCast(df, hn::GatherOffset(d, reinterpret_cast<const double*>(from), bytes));
      };
      std::int64_t i = 0;
      for (; i + 2 * lanes <= count; i += 2 * lanes) {
        a = hn::Add(a, load(i));
        b = hn::Add(b, load(i + lanes));
      }
      for (; i < count; ++i) sum += from[offsets[i]] + from[offsets[i] + 1];
    }
    sum += hn::GetLane(hn::SumOfLanes(df, hn::Add(a, b)));
    return sum;
  }
#endif
  const hn::CappedTag<float, 2> d;
  constexpr int kInFlight = 8;
  hn::Vec<decltype(d)> sums[kInFlight];
  for (auto& one : sums) one = hn::Zero(d);
  for (std::int64_t p = 0; p < planes; ++p) {
    const float* from = values + p * plane;
    std::int64_t i = 0;
    for (; i + kInFlight <= count; i += kInFlight) {
      HWY_UNROLL(8)
      for (int c = 0; c < kInFlight; ++c)
        sums[c] = hn::Add(sums[c], hn::LoadU(d, from + offsets[i + c]));
    }
    for (; i < count; ++i) sums[0] = hn::Add(sums[0], hn::LoadU(d, from + offsets[i]));
  }
  for (const auto& one : sums) sum += hn::GetLane(hn::SumOfLanes(d, one));
  return sum;
}

// Image i has the offsets [starts[i], starts[i + 1]), the same for each of its planes.
void bound_pairs(const float* values, std::int64_t images, std::int64_t planes, std::int64_t plane,
                 const std::int32_t* offsets, const std::int64_t* starts, std::int64_t gather,
                 float* sum) {
  *sum = 0;
  for (std::int64_t i = 0; i < images; ++i) {
    const float* from = values + i * planes * plane;
    const std::int32_t* at = offsets + starts[i];
    const std::int64_t count = starts[i + 1] - starts[i];
    *sum += gather != 0 ? sum_pairs<true>(from, planes, plane, at, count)
                        : sum_pairs<false>(from, planes, plane, at, count);
  }
}

// `out` is aligned to 64 bytes, `count` a multiple of 16. stream: past the caches.
void bound_write(float* HWY_RESTRICT out, std::int64_t count, std::int64_t stream) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.0F);
  if (stream != 0) {
    for (std::int64_t i = 0; i + lanes <= count; i += lanes) hn::Stream(one, d, out + i);
    hwy::FlushStream();
  } else {
    for (std::int64_t i = 0; i + lanes <= count; i += lanes) hn::Store(one, d, out + i);
  }
}

const char* target() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace tenonnx
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenonnx {
HWY_EXPORT(bound_chunks);
HWY_EXPORT(bound_pairs);
HWY_EXPORT(bound_write);
HWY_EXPORT(target);
}  // namespace tenonnx

#define TENONNX_BOUNDS_API extern "C" __attribute__((visibility("default")))
TENONNX_BOUNDS_API int tenonnx_bound_chunks(const float* values, const std::int32_t* offsets,
                                            std::int64_t count, std::int64_t channels,
                                            std::int64_t width, float* sum) {
  return HWY_DYNAMIC_DISPATCH(tenonnx::bound_chunks)(values, offsets, count, channels, width, sum);
}
TENONNX_BOUNDS_API void tenonnx_bound_pairs(const float* values, std::int64_t images,
                                            std::int64_t planes, std::int64_t plane,
                                            const std::int32_t* offsets, const std::int64_t* starts,
                                            std::int64_t gather, float* sum) {
  HWY_DYNAMIC_DISPATCH(tenonnx::bound_pairs)
  (values, images, planes, plane, offsets, starts, gather, sum);
}
TENONNX_BOUNDS_API void tenonnx_bound_write(float* out, std::int64_t count, std::int64_t stream) {
  HWY_DYNAMIC_DISPATCH(tenonnx::bound_write)(out, count, stream);
}
TENONNX_BOUNDS_API const char* tenonnx_instruction_set() {
  return HWY_DYNAMIC_DISPATCH(tenonnx::target)();
}
#endif  // HWY_ONCE
