// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Loads and stores of storage.h as vectors of float32. Included once for each instruction set,
// after hwy/highway.h.
#if defined(TENONNX_KERNELS_STORAGE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENONNX_KERNELS_STORAGE_INL_H
#undef TENONNX_KERNELS_STORAGE_INL_H
#else
#define TENONNX_KERNELS_STORAGE_INL_H
#endif

#include <hwy/highway.h>

#include "kernels/storage.h"

HWY_BEFORE_NAMESPACE();
namespace tenonnx::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lanes(d) elements from an address of any alignment.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const Half* from) {
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from)));
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const BHalf* from) {
  const hn::Rebind<std::uint16_t, D> dh;
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(
                            du, hn::LoadU(dh, reinterpret_cast<const std::uint16_t*>(from)))));
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, float* to) {
  hn::StoreU(value, d, to);
}
template <class D>
HWY_INLINE void store([[maybe_unused]] D d, hn::Vec<D> value, Half* to) {
  // Highway's emulation (below AVX2) flushes subnormals and does not round to even.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  const hn::Rebind<hwy::float16_t, D> dh;
  hn::StoreU(hn::DemoteTo(dh, value), dh, reinterpret_cast<hwy::float16_t*>(to));
#else
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(value, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) from_float(lanes[i], to[i]);
#endif
}
template <class D>
HWY_INLINE void store([[maybe_unused]] D d, hn::Vec<D> value, BHalf* to) {
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::uint16_t, D> dh;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du, 0x7FFF)), odd));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40));
  const auto is_nan = hn::RebindMask(du, hn::Ne(value, value));
  hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, hn::IfThenElse(is_nan, quiet, rounded))), dh,
             reinterpret_cast<std::uint16_t*>(to));
}

}  // namespace tenonnx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
