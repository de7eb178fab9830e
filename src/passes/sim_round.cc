// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/sim_round.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace tenonnx {
namespace {

// What the storage types differ in, in terms of the carrier (float or double).
template <typename T>
struct Format {
  int dropped_bits;  // of the carrier's significand
  T smallest_normal;
  // Added to a magnitude below smallest_normal and subtracted again, it rounds to the unit of the
  // type's subnormals: its own unit in the last place is that unit.
  T subnormal_shift;
  T largest;
};

template <typename T>
Format<T> format_of(DType storage) {
  constexpr int kBits = std::numeric_limits<T>::digits;  // 24, 53
  const auto make = [](int bits, int min_exponent, T largest) {
    // Unit at the smallest normal: 2^(min_exponent - bits + 1); the carrier has that unit at
    // 2^(min_exponent - bits + kBits).
    return Format<T>{kBits - bits, static_cast<T>(std::ldexp(1.0, min_exponent)),
                     static_cast<T>(std::ldexp(1.0, min_exponent - bits + kBits)), largest};
  };
  if (storage == DType::kFloat16) return make(11, -14, T{65504});
  if (storage == DType::kBFloat16) return make(8, -126, static_cast<T>(0x1.FEp127));
  return make(24, -126, static_cast<T>(std::numeric_limits<float>::max()));
}

template <typename T>
struct Limits {
  T keep;      // the largest magnitude that stays
  T beyond;    // what a larger finite one becomes
  T infinite;  // what infinity becomes
  T nan;       // what NaN becomes
};

template <typename T>
Limits<T> limits_of(const Overflow& overflow, const Format<T>& format) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
  if (overflow.kind == Overflow::Kind::kInfinity)
    return {format.largest, kInfinity, kInfinity, kNaN};
  const T max = static_cast<T>(overflow.max);
  return {max, max, overflow.infinite > 0 ? static_cast<T>(overflow.infinite) : max,
          overflow.nan ? static_cast<T>(*overflow.nan) : kNaN};
}

// Selects instead of branches, so that the compiler vectorises it.
template <typename T, typename Bits>
void round_array(const RoundSpec& spec, const T* in, T* out, std::int64_t count) {
  const Format<T> format = format_of<T>(spec.storage);
  const Limits<T> limits = limits_of(spec.overflow, format);
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  const int drop = format.dropped_bits;
  const Bits half_less_one = drop > 0 ? (Bits{1} << (drop - 1)) - 1 : 0;
  const Bits odd_mask = drop > 0 ? 1 : 0;
  const Bits keep_mask = ~((Bits{1} << drop) - 1);
  const T flush_below = spec.keep_subnormals || !spec.round ? T{0} : format.smallest_normal;
  const bool replace_nan = !std::isnan(limits.nan);
  const bool round = spec.round;
  constexpr T kLargest = std::numeric_limits<T>::max();
  for (std::int64_t i = 0; i < count; ++i) {
    const Bits bits = std::bit_cast<Bits>(in[i]);
    const Bits sign = bits & kSign;
    const Bits magnitude_bits = bits & ~kSign;
    const T magnitude = std::bit_cast<T>(magnitude_bits);
    const T normal = std::bit_cast<T>(static_cast<Bits>(
        (magnitude_bits + half_less_one + ((magnitude_bits >> drop) & odd_mask)) & keep_mask));
    const T subnormal = (magnitude + format.subnormal_shift) - format.subnormal_shift;
    T rounded = magnitude < format.smallest_normal ? subnormal : normal;
    const bool beyond = rounded > limits.keep;
    rounded = round ? rounded : magnitude;
    rounded = rounded < flush_below ? T{0} : rounded;
    rounded = beyond ? limits.beyond : rounded;
    rounded = magnitude > kLargest ? limits.infinite : rounded;
    T result = std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(rounded) | sign));
    const T nan = replace_nan ? limits.nan : in[i];
    result = magnitude != magnitude ? nan : result;
    out[i] = result;
  }
}

template <typename T, typename Bits>
void round_all(const RoundSpec& spec, const T* in, T* out, std::int64_t count, std::int64_t first) {
  if (spec.relative_error > 0) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double n = normal_at(spec.seed, static_cast<std::uint64_t>(first + i));
      out[i] = static_cast<T>(static_cast<double>(in[i]) * (1.0 + spec.relative_error * n));
    }
    in = out;
  }
  round_array<T, Bits>(spec, in, out, count);
}

// SplitMix64 (Steele, Lea, Flood 2014): every bit of the output depends on every bit of the input.
std::uint64_t mix(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

void round_values(const RoundSpec& spec, const float* in, float* out, std::int64_t count,
                  std::int64_t first) {
  round_all<float, std::uint32_t>(spec, in, out, count, first);
}

void round_values(const RoundSpec& spec, const double* in, double* out, std::int64_t count,
                  std::int64_t first) {
  round_all<double, std::uint64_t>(spec, in, out, count, first);
}

double normal_at(std::uint64_t seed, std::uint64_t index) {
  // Box-Muller on two uniform numbers, the first in (0, 1].
  const std::uint64_t a = mix(seed ^ mix(index));
  const std::uint64_t b = mix(a);
  const double u = (static_cast<double>(a >> 11) + 1.0) * 0x1p-53;
  const double v = static_cast<double>(b >> 11) * 0x1p-53;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

std::uint64_t tensor_seed(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return mix(seed) ^ hash;
}

}  // namespace tenonnx
