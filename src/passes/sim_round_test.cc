// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/sim_round.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "base/half.h"

namespace tenonnx {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// The definition, in plain double precision: quotients by powers of two are exact there, and
// nearbyint rounds ties to even.
double reference(const RoundSpec& spec, double x) {
  const int bits = spec.storage == DType::kFloat16 ? 11 : spec.storage == DType::kBFloat16 ? 8 : 24;
  const int min_exponent = spec.storage == DType::kFloat16 ? -14 : -126;
  const int max_exponent = spec.storage == DType::kFloat16 ? 15 : 127;
  const bool saturate = spec.overflow.kind == Overflow::Kind::kSaturate;
  const double largest = std::ldexp(2.0 - std::ldexp(1.0, 1 - bits), max_exponent);
  const double keep = saturate ? spec.overflow.max : largest;
  if (std::isnan(x)) return saturate && spec.overflow.nan ? *spec.overflow.nan : x;
  if (std::isinf(x)) {
    if (!saturate) return x;
    return std::copysign(spec.overflow.infinite > 0 ? spec.overflow.infinite : keep, x);
  }
  const double magnitude = std::abs(x);
  const int e = magnitude == 0 ? min_exponent : std::max(std::ilogb(magnitude), min_exponent);
  const double unit = std::ldexp(1.0, e - bits + 1);
  double rounded = std::nearbyint(magnitude / unit) * unit;
  const bool beyond = rounded > keep;
  if (!spec.round) rounded = magnitude;
  if (spec.round && !spec.keep_subnormals && rounded < std::ldexp(1.0, min_exponent)) rounded = 0;
  if (beyond) rounded = saturate ? keep : std::numeric_limits<double>::infinity();
  return std::copysign(rounded, x);
}

float round_one(const RoundSpec& spec, float x) {
  float out = 0;
  round_values(spec, &x, &out, 1);
  return out;
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

RoundSpec plain(DType storage) {
  RoundSpec spec;
  spec.storage = storage;
  return spec;
}

RoundSpec saturating(double max, double infinite = 0, std::optional<double> nan = {}) {
  RoundSpec spec = plain(DType::kFloat16);
  spec.overflow.kind = Overflow::Kind::kSaturate;
  spec.overflow.max = max;
  spec.overflow.infinite = infinite;
  spec.overflow.nan = nan;
  return spec;
}

// All float16 patterns, their neighbours in float32, the middles between them (ties) and the
// middles' neighbours; the region of overflow up to 2^18; float32's extremes.
std::vector<float> interesting_values() {
  std::vector<float> values;
  for (std::uint32_t h = 0; h < 0x10000u; ++h) {
    const float x = float16_to_float(static_cast<std::uint16_t>(h));
    const float next = float16_to_float(static_cast<std::uint16_t>(h + 1));
    for (const float v : {x, static_cast<float>((double{x} + double{next}) / 2)}) {
      values.push_back(v);
      values.push_back(std::nextafter(v, kInf));
      values.push_back(std::nextafter(v, -kInf));
    }
  }
  for (float x = 65400; x < 262144; x += 3.5F) {
    values.push_back(x);
    values.push_back(-x);
  }
  for (const float x : {65503.0F,
                        65504.0F,
                        65519.996F,
                        65520.0F,
                        65536.0F,
                        65535.99F,
                        131008.0F,
                        131039.99F,
                        131040.0F,
                        131072.0F,
                        0x1p-24F,
                        0x1p-25F,
                        0x1.000002p-25F,
                        0x1p-14F,
                        0x1.FFCp-15F,
                        0x1.FFFp-15F,
                        1e-45F,
                        1e-39F,
                        0x1p-126F,
                        0x1p-133F,
                        0x1p-134F,
                        3e38F,
                        std::numeric_limits<float>::max(),
                        kInf,
                        kNaN}) {
    values.push_back(x);
    values.push_back(-x);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return values;
}

RoundSpec pattern() {
  RoundSpec spec = plain(DType::kFloat16);
  spec.overflow.kind = Overflow::Kind::kPattern;
  return spec;
}

// Operands of IEEE operators and their results, on a device that reads NaN's bits as a number.
TEST(SimRound, NanIsAPattern) {
  RoundSpec operand = pattern();
  operand.round = false;
  EXPECT_EQ(round_one(operand, 65504), 65504);
  EXPECT_EQ(round_one(operand, 65536), kInf);
  EXPECT_EQ(round_one(operand, -65536), -kInf);
  for (const float x : {65600.0F, 70016.0F, 98304.0F, 131008.0F}) {
    const float nan = round_one(operand, x);
    EXPECT_TRUE(std::isnan(nan)) << x;
    // float16's quiet bit is the first of the significand: half of 65536.
    const float quiet = x < 98304 ? x + 32768 : x;
    EXPECT_EQ(round_one(pattern(), nan), quiet);
    EXPECT_EQ(round_one(pattern(), round_one(operand, -x)), -quiet);
    EXPECT_EQ(round_one(pattern(), nan * 1e-3F + 1), quiet) << "an operation keeps it";
    double wide = x;
    round_values(operand, &wide, &wide, 1);
    EXPECT_TRUE(std::isnan(wide));
    EXPECT_EQ(pattern_of(wide), quiet);
  }
  EXPECT_EQ(round_one(pattern(), 65520), 65536);
  EXPECT_EQ(round_one(pattern(), -kInf), -65536);
  EXPECT_EQ(round_one(pattern(), kNaN), -98304) << "of an invalid operation";
  EXPECT_EQ(round_one(pattern(), -kNaN), -98304);
}

std::vector<RoundSpec> all_specs() {
  std::vector<RoundSpec> specs = {plain(DType::kFloat16),    plain(DType::kBFloat16),
                                  plain(DType::kFloat32),    saturating(131008),
                                  saturating(65504),         saturating(65536, 131008, 131008),
                                  saturating(1000.3, 0, 0.0)};
  for (std::size_t i = 0, n = specs.size(); i < n; ++i) {
    RoundSpec flushing = specs[i];
    flushing.keep_subnormals = false;
    specs.push_back(flushing);
    RoundSpec range_only = specs[i];
    range_only.round = false;
    specs.push_back(range_only);
  }
  return specs;
}

// Exact: both sides round the same real number once.
TEST(SimRound, EqualsTheDefinitionInDoublePrecision) {
  const std::vector<float> values = interesting_values();
  std::vector<float> out(values.size());
  for (const RoundSpec& spec : all_specs()) {
    round_values(spec, values.data(), out.data(), static_cast<std::int64_t>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float expected = static_cast<float>(reference(spec, values[i]));
      ASSERT_TRUE(same_bits(out[i], expected))
          << to_string(spec.storage) << " max " << spec.overflow.max << ": " << std::hexfloat
          << values[i] << " gave " << out[i] << ", expected " << expected;
    }
  }
}

TEST(SimRound, DoublesEqualTheDefinitionToo) {
  std::vector<double> values;
  for (const float v : interesting_values()) values.push_back(v);
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> exponent(-30, 20);
  for (int i = 0; i < 100000; ++i) values.push_back(std::exp2(exponent(random)));
  std::vector<double> out(values.size());
  for (const RoundSpec& spec : all_specs()) {
    round_values(spec, values.data(), out.data(), static_cast<std::int64_t>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double expected = reference(spec, values[i]);
      ASSERT_TRUE(out[i] == expected || (std::isnan(out[i]) && std::isnan(expected)))
          << std::hexfloat << values[i] << " gave " << out[i] << ", expected " << expected;
    }
  }
}

// Where the storage overflows to infinity it is the type itself, bit for bit.
TEST(SimRound, WithoutSaturationItIsTheCast) {
  for (const float x : interesting_values()) {
    ASSERT_TRUE(
        same_bits(round_one(plain(DType::kFloat16), x), float16_to_float(float_to_float16(x))))
        << std::hexfloat << x;
    ASSERT_TRUE(
        same_bits(round_one(plain(DType::kBFloat16), x), bfloat16_to_float(float_to_bfloat16(x))))
        << std::hexfloat << x;
  }
}

TEST(SimRound, Float16Overflow) {
  EXPECT_EQ(round_one(plain(DType::kFloat16), 65519.996F), 65504);
  EXPECT_EQ(round_one(plain(DType::kFloat16), 65520), kInf);
  // Beyond 65504 the 11 significant bits stay: steps of 64 between 65536 and 131072.
  EXPECT_EQ(round_one(saturating(131008), 65519.996F), 65504);
  EXPECT_EQ(round_one(saturating(131008), 65520), 65536);
  EXPECT_EQ(round_one(saturating(131008), 90000), 89984);  // 300 * 300 on HTP's emulator
  EXPECT_EQ(round_one(saturating(131008), 1e6F), 131008);
  EXPECT_EQ(round_one(saturating(131008), -1e6F), -131008);
  EXPECT_EQ(round_one(saturating(131008), kInf), 131008);
  EXPECT_TRUE(std::isnan(round_one(saturating(131008), kNaN)));
  EXPECT_EQ(round_one(saturating(65536, 131008, 5.0), 1e6F), 65536);
  EXPECT_EQ(round_one(saturating(65536, 131008, 5.0), -kInf), -131008);
  EXPECT_EQ(round_one(saturating(65536, 131008, 5.0), kNaN), 5);
}

// The operand of a product: what is stored passes, what the multiplier cannot hold is infinite.
TEST(SimRound, OperandKeepsItsBitsWithinTheRange) {
  RoundSpec spec = plain(DType::kFloat16);
  spec.round = false;
  EXPECT_EQ(round_one(spec, 1.0001F), 1.0001F);
  EXPECT_EQ(round_one(spec, 1e-9F), 1e-9F);
  EXPECT_EQ(round_one(spec, 65504), 65504);
  EXPECT_EQ(round_one(spec, 65536), kInf);
  EXPECT_EQ(round_one(spec, -131008), -kInf);
}

TEST(SimRound, InPlace) {
  std::vector<float> values = {1.0001F, 70000, 1e-9F};
  round_values(plain(DType::kFloat16), values.data(), values.data(), 3);
  EXPECT_EQ(values, (std::vector<float>{1, kInf, 0}));
}

// 100,000 draws: the mean's standard error is 1/sqrt(n) = 0.0032, that of the standard deviation
// 1/sqrt(2n) = 0.0022; four of each.
TEST(SimRound, RelativeErrorHasTheStatedSpread) {
  constexpr int kCount = 100000;
  RoundSpec spec = plain(DType::kFloat32);
  spec.relative_error = 0.01;
  spec.seed = tensor_seed(7, "y");
  const std::vector<float> ones(kCount, 1.0F);
  std::vector<float> out(kCount);
  round_values(spec, ones.data(), out.data(), kCount);
  double sum = 0, squares = 0;
  for (const float y : out) {
    const double n = (double{y} - 1) / 0.01;
    sum += n;
    squares += n * n;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 0, 4 * 0.0032);
  EXPECT_NEAR(std::sqrt(squares / kCount - mean * mean), 1, 4 * 0.0022);

  std::vector<float> again(kCount), parts(kCount);
  round_values(spec, ones.data(), again.data(), kCount);
  EXPECT_EQ(out, again);
  // In pieces, as several threads do it, it is the same.
  round_values(spec, ones.data(), parts.data(), 777);
  round_values(spec, ones.data() + 777, parts.data() + 777, kCount - 777, 777);
  EXPECT_EQ(out, parts);
  spec.seed = tensor_seed(7, "z");
  round_values(spec, ones.data(), again.data(), kCount);
  EXPECT_NE(out, again);
  spec.seed = tensor_seed(8, "y");
  round_values(spec, ones.data(), again.data(), kCount);
  EXPECT_NE(out, again);
}

}  // namespace
}  // namespace tenonnx
