// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "kernels/int8_lut_grid_sample/int8_lut_grid_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/guarded_for_test.h"
#include "kernels/targets_for_test.h"

namespace tenonnx {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::size_t n(std::int64_t i) { return static_cast<std::size_t>(i); }

Int8LutGridSample random_call(std::mt19937& random) {
  const auto below = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  constexpr int kChannels[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 96};
  Int8LutGridSample c;
  c.batch = 1 + below(3);
  c.channels = kChannels[below(19)];
  c.height = 1 + below(20);
  c.width = below(10) == 0 ? 200 + below(100) : 1 + below(20);
  c.out_height = 1 + below(12);
  c.out_width = below(10) == 0 ? 300 + below(60) : 1 + below(24);
  c.channels_last = below(2) == 0;
  c.align_corners = below(2) == 0;
  c.padding = below(2) == 0 ? Int8LutPadding::kZeros : Int8LutPadding::kBorder;
  c.value_scale = 0.001F + 0.1F * static_cast<float>(below(1000)) / 1000;
  c.out_scale =
      c.value_scale * (below(3) == 0 ? 1.0F : 0.3F + 0.01F * static_cast<float>(below(99)));
  c.value_zero_point = below(3) == 0 ? 0 : below(256) - 128;
  c.out_zero_point = below(3) == 0 ? 0 : below(256) - 128;
  return c;
}

float random_coordinate(std::mt19937& random, std::int64_t size) {
  const float s = static_cast<float>(size);
  switch (random() % 16) {
    case 0: {
      constexpr float kSpecial[] = {kNan, kInf, -kInf, 3e38F, -3e38F, 1e-40F, 0, -0.0F, 1, -1};
      return kSpecial[random() % 10];
    }
    case 1:  // ties of the fraction, whole pixels and half ones
      return (2.0F * static_cast<float>(random() % 2048) / 512 + 1) / s - 1;
    default:
      return std::uniform_real_distribution<float>(-1.0F - 4 / s, 1.0F + 4 / s)(random);
  }
}

template <typename T>
void check_same(const Int8LutGridSample& c, std::mt19937& random) {
  ASSERT_EQ(c.check(), "");
  const Against against = random() % 2 ? Against::kEnd : Against::kBegin;
  Guarded<std::int8_t> value(n(c.batch * c.channels * c.pixels()), against);
  Guarded<float> grid(n(c.batch * c.points() * 2), against);
  Guarded<T> out(n(c.batch * c.channels * c.points()), against);
  for (auto& v : value) v = static_cast<std::int8_t>(random());
  for (std::size_t i = 0; i < grid.size(); ++i)
    grid[i] = random_coordinate(random, i % 2 ? c.height : c.width);
  std::vector<T> expected(out.size());
  int8_lut_grid_sample_reference(c, value.data(), grid.data(), expected.data());
  std::memset(static_cast<void*>(out.data()), 0x55, out.size() * sizeof(T));
  if (random() % 8 == 0)
    int8_lut_grid_sample(c, value.data(), grid.data(), out.data(), Threads());
  else
    int8_lut_grid_sample(c, value.data(), grid.data(), out.data(), Serial());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(out[i], expected[i])
        << "element " << i << " channels " << c.channels << (c.channels_last ? " last" : " first");
}

TEST(Int8LutGridSample, SameBitsAsTheReferenceOnEveryInstructionSet) {
  for_each_target([] {
    std::mt19937 random(1);
    for (int i = 0; i < 2000 && !testing::Test::HasFatalFailure(); ++i) {
      SCOPED_TRACE("case " + std::to_string(i));
      const Int8LutGridSample c = random_call(random);
      if (i % 4 == 0)
        check_same<float>(c, random);
      else
        check_same<std::int8_t>(c, random);
    }
  });
}

// Float bilinear sampling of one channel, and the steps of the header's bound: the largest
// difference of neighbours in the padded image (each neighbour on its own) along x and along y.
struct Exact {
  double value, step_x, step_y;
};
Exact exact(const Int8LutGridSample& c, const std::int8_t* plane, double gx, double gy) {
  const auto at = [&](std::int64_t x, std::int64_t y) -> double {
    if (c.padding == Int8LutPadding::kBorder) {
      x = std::clamp<std::int64_t>(x, 0, c.width - 1);
      y = std::clamp<std::int64_t>(y, 0, c.height - 1);
    } else if (x < 0 || x >= c.width || y < 0 || y >= c.height) {
      return 0;
    }
    return plane[y * c.width + x] - c.value_zero_point;
  };
  const auto pixel = [&](double g, std::int64_t size) {
    const auto s = static_cast<double>(size);
    return c.align_corners ? (g + 1) / 2 * (s - 1) : ((g + 1) * s - 1) / 2;
  };
  const double x = pixel(gx, c.width), y = pixel(gy, c.height);
  const double x0 = std::floor(x), y0 = std::floor(y), dx = x - x0, dy = y - y0;
  const auto ix = static_cast<std::int64_t>(x0), iy = static_cast<std::int64_t>(y0);
  Exact e{(1 - dy) * ((1 - dx) * at(ix, iy) + dx * at(ix + 1, iy)) +
              dy * ((1 - dx) * at(ix, iy + 1) + dx * at(ix + 1, iy + 1)),
          0, 0};
  // The cells around it too: rounding can carry a coordinate into the next one.
  for (std::int64_t j = iy - 1; j <= iy + 2; ++j)
    for (std::int64_t i = ix - 1; i <= ix + 2; ++i) {
      e.step_x = std::max(e.step_x, std::abs(at(i + 1, j) - at(i, j)));
      e.step_y = std::max(e.step_y, std::abs(at(i, j + 1) - at(i, j)));
    }
  return e;
}

TEST(Int8LutGridSample, ErrorAgainstFloatStaysWithinItsBound) {
  std::mt19937 random(2);
  double worst = 0;
  for (int i = 0; i < 400; ++i) {
    Int8LutGridSample c = random_call(random);
    c.channels_last = false;
    c.channels = 1 + i % 3;
    std::vector<std::int8_t> value(n(c.batch * c.channels * c.pixels()));
    // Extremes: where the bound is reached.
    for (auto& v : value)
      v = static_cast<std::int8_t>(i % 2 ? (random() % 2 ? 127 : -128)
                                         : static_cast<int>(random()));
    std::vector<float> grid(n(c.batch * c.points() * 2));
    for (float& g : grid) g = std::uniform_real_distribution<float>(-1.4F, 1.4F)(random);
    std::vector<float> real(n(c.batch * c.channels * c.points()));
    std::vector<std::int8_t> rounded(real.size());
    int8_lut_grid_sample(c, value.data(), grid.data(), real.data(), Serial());
    int8_lut_grid_sample(c, value.data(), grid.data(), rounded.data(), Serial());
    for (std::int64_t b = 0; b < c.batch * c.channels; ++b)
      for (std::int64_t p = 0; p < c.points(); ++p) {
        const float* g = &grid[n(2 * (b / c.channels * c.points() + p))];
        const Exact e = exact(c, &value[n(b * c.pixels())], g[0], g[1]);
        const double scale = c.value_scale, want = scale * e.value;
        const double limit =
            scale * kInt8LutAxisError * (e.step_x + e.step_y) + 0x1p-22 * std::abs(want) + 1e-12;
        const std::size_t at = n(b * c.points() + p);
        ASSERT_LE(std::abs(real[at] - want), limit);
        worst = std::max(worst, std::abs(real[at] - want) / scale);
        if (rounded[at] == 127 || rounded[at] == -128) continue;  // may have saturated
        const double got = static_cast<double>(c.out_scale) * (rounded[at] - c.out_zero_point);
        ASSERT_LE(std::abs(got - want), limit + c.out_scale * (0.5 + 1e-4));
      }
  }
  // The bound is not far from what happens: a quarter of it is seen.
  EXPECT_GE(worst, 0.5);
}

struct Small {
  Int8LutGridSample call;
  std::vector<std::int8_t> values;
  explicit Small(Int8LutPadding padding) {
    call.batch = call.channels = call.out_height = call.out_width = 1;
    call.height = call.width = 2;
    call.padding = padding;
    values = {0, 10, 20, 30};
  }
  float at(float x, float y) const {
    const float grid[2] = {x, y};
    float out = -7;
    int8_lut_grid_sample(call, values.data(), grid, &out, Serial());
    return out;
  }
};

TEST(Int8LutGridSample, WorkedExamples) {
  for_each_target([] {
    const Small zeros(Int8LutPadding::kZeros), border(Int8LutPadding::kBorder);
    // Pixel (0.25, 0.5): 12.5 but for weights in 255ths (64 and 128 of 255).
    EXPECT_NEAR(zeros.at(-0.25F, 0), 10 * 64.0 / 255 + 20 * 128.0 / 255, 1e-5);
    EXPECT_NEAR(zeros.at(-0.25F, 0), 12.5, kInt8LutAxisError * 30);
    EXPECT_FLOAT_EQ(zeros.at(0.5F, 0.5F), 30);  // whole pixels are exact
    EXPECT_FLOAT_EQ(zeros.at(-0.5F, 0.5F), 20);
    EXPECT_NEAR(zeros.at(-1, 0.5F), 20 * 128.0 / 255, 1e-5);  // u = -1 is x = -0.5
    EXPECT_FLOAT_EQ(border.at(-1, 0.5F), 20);
    EXPECT_FLOAT_EQ(zeros.at(9, 9), 0);
    EXPECT_FLOAT_EQ(border.at(9, 9), 30);
    Small offset = zeros;  // outside is the zero point: the real value 0
    offset.call.value_zero_point = 10;
    EXPECT_FLOAT_EQ(offset.at(9, 9), 0);
    EXPECT_FLOAT_EQ(offset.at(-0.5F, -0.5F), -10);
  });
}

TEST(Int8LutGridSample, NanAndInfiniteCoordinates) {
  for_each_target([] {
    const Small zeros(Int8LutPadding::kZeros);
    Small border(Int8LutPadding::kBorder);
    border.values = {5, 10, 20, 30};
    for (const float bad : {kNan, kInf, -kInf}) {
      EXPECT_EQ(zeros.at(bad, 0), 0);
      EXPECT_EQ(zeros.at(0, bad), 0);
    }
    EXPECT_EQ(border.at(kNan, kNan), 5);
    EXPECT_EQ(border.at(kInf, kNan), 10);
    EXPECT_EQ(border.at(-kInf, kInf), 20);
  });
}

TEST(Int8LutGridSample, SaturatesAndRoundsHalfToEven) {
  for_each_target([] {
    Small small(Int8LutPadding::kZeros);
    small.call.out_scale = 4;
    const float grid[2] = {0.5F, -0.5F};  // 10 / 4 = 2.5
    std::int8_t out = 0;
    const auto run = [&] {
      int8_lut_grid_sample(small.call, small.values.data(), grid, &out, Serial());
      return static_cast<int>(out);
    };
    EXPECT_EQ(run(), 2);
    small.call.out_zero_point = -100;
    EXPECT_EQ(run(), -98);
    small.call.out_scale = 1e-9F;
    EXPECT_EQ(run(), 127);
    small.values[1] = -10;
    EXPECT_EQ(run(), -128);
  });
}

TEST(Int8LutGridSample, SaysWhatIsWrong) {
  Int8LutGridSample good = Small(Int8LutPadding::kZeros).call;
  EXPECT_EQ(good.check(), "");
  const auto with = [&](auto change) {
    Int8LutGridSample c = good;
    change(c);
    return c.check();
  };
  EXPECT_EQ(with([](auto& c) { c.height = 0; }), "the height is 0, 1 to 2^22 are possible");
  EXPECT_EQ(with([](auto& c) { c.channels = 0; }),
            "the number of channels is 0, at least 1 is needed");
  EXPECT_EQ(with([](auto& c) { c.value_zero_point = 128; }),
            "value_zero_point is 128, -128 to 127 (int8) are possible");
  EXPECT_THAT(with([](auto& c) { c.out_scale = 0; }), testing::HasSubstr("out_scale is 0.0"));
  EXPECT_THAT(with([](auto& c) { c.value_scale = kNan; }),
              testing::HasSubstr("value_scale is nan"));
}

}  // namespace
}  // namespace tenonnx
