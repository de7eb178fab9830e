// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/sim_round.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <type_traits>

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

// Bits of NaN: the quiet bit, then float16's other nine bits of significand as payload. The last
// bit says that an operand was NaN: the NaN of an invalid operation has another sign on x86 than on
// Arm.
template <typename T>
struct NanBits {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int kShift = std::numeric_limits<T>::digits - 11;  // to float16's significand
  static constexpr Bits kQuiet = Bits{0x200} << kShift;
  static constexpr Bits kOperand = 1;
};

// 65536 * (1 + significand / 1024) as bits: the significand stands where it did.
template <typename T, typename Bits>
Bits pattern_bits(Bits nan) {
  using N = NanBits<T>;
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  constexpr Bits kSignificand = Bits{0x3ff} << N::kShift;
  const Bits sign = (nan & N::kOperand) != 0 ? nan & kSign : kSign;
  return sign | std::bit_cast<Bits>(T{65536}) | (nan & kSignificand) | N::kQuiet;
}

// Values that are stored already, as an IEEE operator sees their bits.
template <typename T, typename Bits>
void operand_array(const T* in, T* out, std::int64_t count) {
  using N = NanBits<T>;
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  constexpr Bits kSignificand = Bits{0x3ff} << N::kShift;
  const Bits infinity = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  const Bits first = std::bit_cast<Bits>(T{65536});
  for (std::int64_t i = 0; i < count; ++i) {
    const Bits bits = std::bit_cast<Bits>(in[i]), magnitude = bits & ~kSign;
    Bits out_bits = bits;
    if (magnitude == first) out_bits = (bits & kSign) | infinity;
    if (magnitude > first && magnitude < infinity)
      out_bits = (bits & kSign) | infinity | (bits & kSignificand) | N::kQuiet | N::kOperand;
    out[i] = std::bit_cast<T>(out_bits);
  }
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
  if (overflow.kind == Overflow::Kind::kPattern) return {format.largest, T{65536}, T{65536}, kNaN};
  const T max = static_cast<T>(overflow.max);
  return {max, max, overflow.infinite > 0 ? static_cast<T>(overflow.infinite) : max,
          overflow.nan ? static_cast<T>(*overflow.nan) : kNaN};
}

// Magnitudes are compared as integers, which have the same order, and chosen by selects: so the
// compiler vectorises it without leave to ignore floating-point exceptions.
template <typename T, typename Bits>
void round_array(const RoundSpec& spec, const T* from, T* to, std::int64_t total) {
  using Int = std::make_signed_t<Bits>;
  const auto bits_of = [](T x) { return std::bit_cast<Int>(x); };
  const Format<T> format = format_of<T>(spec.storage);
  const Limits<T> limits = limits_of(spec.overflow, format);
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  const int drop = format.dropped_bits;
  const Bits half_less_one = drop > 0 ? (Bits{1} << (drop - 1)) - 1 : 0;
  const Bits odd_mask = drop > 0 ? 1 : 0;
  const Bits keep_mask = ~((Bits{1} << drop) - 1);
  const Int smallest_normal = bits_of(format.smallest_normal);
  const Int flush_below = spec.keep_subnormals || !spec.round ? 0 : smallest_normal;
  const Int keep = bits_of(limits.keep);
  const Int beyond_bits = bits_of(limits.beyond), infinite_bits = bits_of(limits.infinite);
  const Int infinity = bits_of(std::numeric_limits<T>::infinity());
  const bool replace_nan = !std::isnan(limits.nan);
  const bool pattern = spec.overflow.kind == Overflow::Kind::kPattern;
  const Int nan_bits = bits_of(limits.nan);
  const Int round_mask = spec.round ? -1 : 0;
  const T shift = format.subnormal_shift;
  // By way of a buffer that aliases nothing, as from and to may be the same.
  constexpr std::int64_t kBlock = 1024;
  T in[kBlock];
  for (std::int64_t first = 0; first < total; first += kBlock) {
    const std::int64_t count = std::min(kBlock, total - first);
    std::memcpy(in, from + first, static_cast<std::size_t>(count) * sizeof(T));
    T* const out = to + first;
    for (std::int64_t i = 0; i < count; ++i) {
      const Bits bits = std::bit_cast<Bits>(in[i]);
      const Bits sign = bits & kSign;
      const Bits unsigned_magnitude = bits & ~kSign;
      const Int magnitude = static_cast<Int>(unsigned_magnitude);
      const Int normal = static_cast<Int>(
          (unsigned_magnitude + half_less_one + ((unsigned_magnitude >> drop) & odd_mask)) &
          keep_mask);
      const Int subnormal = bits_of((std::bit_cast<T>(magnitude) + shift) - shift);
      // A mask, not a choice: the compiler would skip the sum above, whose exceptions could trap.
      const Int below = -static_cast<Int>(magnitude < smallest_normal);
      const Int rounded = (subnormal & below) | (normal & ~below);
      Int result = (rounded & round_mask) | (magnitude & ~round_mask);
      result = result < flush_below ? 0 : result;
      result = rounded > keep ? beyond_bits : result;
      result = magnitude >= infinity ? infinite_bits : result;
      result |= static_cast<Int>(sign);
      const Int own_nan = pattern ? static_cast<Int>(pattern_bits<T, Bits>(bits)) : bits_of(in[i]);
      const Int nan = replace_nan ? nan_bits : own_nan;
      result = magnitude > infinity ? nan : result;
      out[i] = std::bit_cast<T>(result);
    }
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
  if (!spec.round && spec.overflow.kind == Overflow::Kind::kPattern)
    return operand_array<T, Bits>(in, out, count);
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

double pattern_of(float nan) {
  return std::bit_cast<float>(pattern_bits<float>(std::bit_cast<std::uint32_t>(nan)));
}
double pattern_of(double nan) {
  return std::bit_cast<double>(pattern_bits<double>(std::bit_cast<std::uint64_t>(nan)));
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
