// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Loads and stores of storage-inl.h against base/half.h, for every value that 16 bits hold.
#include "kernels/storage.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/storage_test.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenonnx::HWY_NAMESPACE {

// `to` = `from`, widened (T to float) or narrowed.
template <typename From, typename To>
void convert(const From* from, To* to, std::size_t count) {
  const hn::CappedTag<float, 16> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i + lanes <= count; i += lanes) store(d, load(d, from + i), to + i);
}
void widen_half(const Half* from, float* to, std::size_t n) { convert(from, to, n); }
void widen_bhalf(const BHalf* from, float* to, std::size_t n) { convert(from, to, n); }
void narrow_half(const float* from, Half* to, std::size_t n) { convert(from, to, n); }
void narrow_bhalf(const float* from, BHalf* to, std::size_t n) { convert(from, to, n); }

}  // namespace tenonnx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include "kernels/targets_for_test.h"

namespace tenonnx {
HWY_EXPORT(widen_half);
HWY_EXPORT(widen_bhalf);
HWY_EXPORT(narrow_half);
HWY_EXPORT(narrow_bhalf);
namespace {

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// Around every value of 16 bits, at a half of the way to the next, and just beside that.
template <typename T>
std::vector<float> values() {
  std::vector<float> all;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = to_float(T{static_cast<std::uint16_t>(bits)});
    const float next = to_float(T{static_cast<std::uint16_t>(bits + 1)});
    const float half = value / 2 + next / 2;
    for (const float v : {value, half, std::nextafter(half, value), std::nextafter(half, next)})
      all.push_back(v);
  }
  return all;
}

template <typename T, typename Widen, typename Narrow>
void check(Widen widen, Narrow narrow) {
  std::vector<T> all(0x10000);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> wide(all.size());
  widen(all.data(), wide.data(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_TRUE(same(wide[i], to_float(all[i]))) << i;
  const std::vector<float> floats = values<T>();
  std::vector<T> narrowed(floats.size());
  narrow(floats.data(), narrowed.data(), floats.size());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    T expected;
    from_float(floats[i], expected);
    ASSERT_TRUE(same(to_float(narrowed[i]), to_float(expected))) << floats[i];
  }
}

TEST(Storage, Half) {
  for_each_target([] {
    check<Half>(
        [](auto... a) {
          HWY_DYNAMIC_DISPATCH(widen_half)
          (a...);
        },
        [](auto... a) {
          HWY_DYNAMIC_DISPATCH(narrow_half)
          (a...);
        });
  });
}

TEST(Storage, BHalf) {
  for_each_target([] {
    check<BHalf>(
        [](auto... a) {
          HWY_DYNAMIC_DISPATCH(widen_bhalf)
          (a...);
        },
        [](auto... a) {
          HWY_DYNAMIC_DISPATCH(narrow_bhalf)
          (a...);
        });
  });
}

}  // namespace
}  // namespace tenonnx
#endif  // HWY_ONCE
