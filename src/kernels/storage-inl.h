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
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, to_float(*from));
#elif HWY_TARGET == HWY_SSE2 || HWY_TARGET == HWY_SSE4
  // Highway 1.0.3 widens infinity and NaN to finite numbers here. 2^112 moves the exponent from the
  // bias of float16 to that of float32, subnormals included.
  const hn::Rebind<std::uint16_t, D> dh;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::PromoteTo(du, hn::LoadU(dh, reinterpret_cast<const std::uint16_t*>(from)));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7FFF)));
  const auto finite = hn::BitCast(du, hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112F)));
  const auto special = hn::Or(magnitude, hn::Set(du, 0x7F800000));
  const auto value = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x0F7FFFFF)), special, finite);
  return hn::BitCast(d, hn::Or(value, hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000)))));
#else
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from)));
#endif
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
  const auto is_nan = hn::RebindMask(du, hn::Not(hn::Eq(value, value)));
  hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, hn::IfThenElse(is_nan, quiet, rounded))), dh,
             reinterpret_cast<std::uint16_t*>(to));
}

}  // namespace tenonnx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
