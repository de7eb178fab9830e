// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace tenonnx {
namespace {

// Every one of the 65,536 patterns survives the way to float32 and back, NaN as NaN.
TEST(Half, EveryFloat16RoundTrips) {
  for (std::uint32_t h = 0; h < 0x10000u; ++h) {
    const float f = float16_to_float(static_cast<std::uint16_t>(h));
    const std::uint16_t back = float_to_float16(f);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(float16_to_float(back)));
    } else {
      ASSERT_EQ(back, h) << f;
    }
  }
}

// Between two neighbours the nearer is taken, and the even one at the middle.
TEST(Half, Float16RoundsToNearestEven) {
  for (std::uint32_t h = 0; h < 0x7BFFu; ++h) {
    const float low = float16_to_float(static_cast<std::uint16_t>(h));
    const float high = float16_to_float(static_cast<std::uint16_t>(h + 1));
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(float_to_float16(middle), h % 2 == 0 ? h : h + 1) << middle;
    ASSERT_EQ(float_to_float16(std::nextafter(middle, 0.0F)), h) << middle;
    ASSERT_EQ(float_to_float16(std::nextafter(middle, 1e9F)), h + 1) << middle;
  }
}

TEST(Half, Float16OverflowsAt65520) {
  EXPECT_EQ(float_to_float16(65519.99F), 0x7BFF);
  EXPECT_EQ(float_to_float16(65520.0F), 0x7C00);
  EXPECT_EQ(float_to_float16(-1e30F), 0xFC00);
}

TEST(Half, EveryBFloat16RoundTrips) {
  for (std::uint32_t h = 0; h < 0x10000u; ++h) {
    const float f = bfloat16_to_float(static_cast<std::uint16_t>(h));
    if (!std::isnan(f)) {
      ASSERT_EQ(float_to_bfloat16(f), h) << f;
    }
  }
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3F808000u)), 0x3F80);  // tie to even
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3F818000u)), 0x3F82);
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7F80);
}

}  // namespace
}  // namespace tenonnx
