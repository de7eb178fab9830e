// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Squares of float32 in registers: Lanes(d) rows of Lanes(d), rows to columns. Included once for
// each instruction set.
#if defined(TENONNX_KERNELS_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENONNX_KERNELS_TRANSPOSE_INL_H
#undef TENONNX_KERNELS_TRANSPOSE_INL_H
#else
#define TENONNX_KERNELS_TRANSPOSE_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tenonnx::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void transpose_square(hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::ScalableTag<float>>*) {
}
#else
// In stages: pairs of numbers, pairs of pairs (both within 128 bits), then pairs of blocks of 128
// bits and of halves of 512. Each stage handles the index bit of one power of two.
HWY_INLINE void transpose_square(
    hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::ScalableTag<float>>* r) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const hn::RepartitionToWide<decltype(d)> dw;
  constexpr int kRows = static_cast<int>(hn::MaxLanes(hn::ScalableTag<float>()));
  HWY_UNROLL(4)
  for (int i = 0; i < kRows; i += 4) {
    const auto a = hn::BitCast(dw, hn::InterleaveLower(d, r[i], r[i + 1]));
    const auto b = hn::BitCast(dw, hn::InterleaveUpper(d, r[i], r[i + 1]));
    const auto e = hn::BitCast(dw, hn::InterleaveLower(d, r[i + 2], r[i + 3]));
    const auto f = hn::BitCast(dw, hn::InterleaveUpper(d, r[i + 2], r[i + 3]));
    r[i] = hn::BitCast(d, hn::InterleaveLower(dw, a, e));
    r[i + 1] = hn::BitCast(d, hn::InterleaveUpper(dw, a, e));
    r[i + 2] = hn::BitCast(d, hn::InterleaveLower(dw, b, f));
    r[i + 3] = hn::BitCast(d, hn::InterleaveUpper(dw, b, f));
  }
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2
  // Row i + 4 k of block j is row i + 4 j of block k.
  if constexpr (kRows == 16) {
    HWY_UNROLL(8)
    for (int i = 0; i < 16; ++i) {
      if (i & 4) continue;
      const auto a = r[i], b = r[i + 4];
      r[i] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
      r[i + 4] = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
    }
  }
  constexpr int kHalf = kRows / 2;
  HWY_UNROLL(8)
  for (int i = 0; i < kHalf; ++i) {
    const auto a = r[i], b = r[i + kHalf];
    r[i] = hn::ConcatLowerLower(d, b, a);
    r[i + kHalf] = hn::ConcatUpperUpper(d, b, a);
  }
#endif
}
#endif

}  // namespace tenonnx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
