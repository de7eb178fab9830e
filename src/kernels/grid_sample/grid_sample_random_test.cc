// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Random shapes, modes and coordinates against the reference, on every instruction set, in memory
// between guard pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/grid_sample/grid_sample.h"
#include "kernels/guarded_for_test.h"
#include "kernels/targets_for_test.h"

namespace tenonnx {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kUnit = 0x1p-24;  // rounding of float32

struct Case {
  GridSampleOptions options;
  GridSampleSizes sizes;
  std::int64_t pixels() const { return sizes.in[0] * sizes.in[1] * sizes.in[2]; }
  std::int64_t points() const { return sizes.out[0] * sizes.out[1] * sizes.out[2]; }
  std::string text() const {
    const auto shape = [](const std::array<std::int64_t, 3>& s) {
      return std::to_string(s[0]) + "x" + std::to_string(s[1]) + "x" + std::to_string(s[2]);
    };
    return "mode " + std::to_string(static_cast<int>(options.mode)) + " padding " +
           std::to_string(static_cast<int>(options.padding)) + " align " +
           std::to_string(options.align_corners) + " last " +
           std::to_string(options.channels_last) + " dimensions " +
           std::to_string(sizes.dimensions) + " batch " + std::to_string(sizes.batch) +
           " channels " + std::to_string(sizes.channels) + " in " + shape(sizes.in) + " out " +
           shape(sizes.out);
  }
};

Case random_case(std::mt19937& random) {
  const auto below = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  constexpr int kChannels[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40};
  Case c;
  c.options.mode = static_cast<GridSampleMode>(below(3));
  c.options.padding = static_cast<GridSamplePadding>(below(3));
  c.options.align_corners = below(2) == 0;
  c.options.channels_last = below(3) == 0;
  c.sizes.dimensions = c.options.mode != GridSampleMode::kCubic && below(3) == 0 ? 3 : 2;
  c.sizes.batch = 1 + below(3);
  c.sizes.channels = kChannels[below(17)];
  c.sizes.in = {1, 1 + below(12), below(8) == 0 ? 100 + below(60) : 1 + below(20)};
  c.sizes.out = {1, 1 + below(10), below(8) == 0 ? 120 + below(60) : 1 + below(24)};
  if (c.sizes.dimensions == 3) {
    c.sizes.in = {1 + below(5), 1 + below(6), 1 + below(12)};
    c.sizes.out = {1 + below(4), 1 + below(6), 1 + below(12)};
  }
  return c;
}

float random_coordinate(std::mt19937& random, std::int64_t size) {
  const float s = static_cast<float>(size);
  switch (random() % 12) {
    case 0: {
      constexpr float kSpecial[] = {kNan, kInf, -kInf, 3e38F, -3e38F, 1e-40F, 0, 1, -1, 500};
      return kSpecial[random() % 10];
    }
    case 1:  // whole pixels, half pixels and quarters
      return (2.0F * static_cast<float>(random() % 128) / 4 + 1) / s - 1;
    default:
      return std::uniform_real_distribution<float>(-1 - 4 / s, 1 + 4 / s)(random);
  }
}

// What rounding may move a pixel's coordinate by: three operations on (|g| + 1) * size, and for
// reflection four more.
double coordinate_error(double g, std::int64_t size, const GridSampleOptions& options) {
  if (!std::isfinite(g)) return 0;
  const double at = (std::abs(g) + 1) * static_cast<double>(size) + 1;
  return kUnit * at * (options.padding == GridSamplePadding::kReflection ? 8 : 3);
}

template <typename T>
double storage_error(double value) {
  if constexpr (std::is_same_v<T, Half>) return 0x1p-11 * std::abs(value) + 0x1p-25;
  if constexpr (std::is_same_v<T, BHalf>) return 0x1p-8 * std::abs(value);
  return kUnit * std::abs(value);
}

// Values of which one in 50 is not finite, in half of the cases.
template <typename T>
void fill_values(std::mt19937& random, Guarded<T>& values) {
  std::normal_distribution<float> normal;
  const bool wild = random() % 2 == 0;
  constexpr float kWild[] = {kNan, kInf, -kInf};
  for (T& v : values)
    from_float(wild && random() % 50 == 0 ? kWild[random() % 3] : normal(random), v);
}

// The largest finite magnitude of each channel of each image, and its range with what pads it.
template <typename T>
struct Range {
  double magnitude = 0, low = 0, high = 0;
  Range(const Case& c, const Guarded<T>& values, std::int64_t n, std::int64_t channel) {
    for (std::int64_t p = 0; p < c.pixels(); ++p) {
      const std::int64_t at = c.options.channels_last
                                  ? (n * c.pixels() + p) * c.sizes.channels + channel
                                  : (n * c.sizes.channels + channel) * c.pixels() + p;
      const double v = to_float(values[static_cast<std::size_t>(at)]);
      if (!std::isfinite(v)) continue;
      magnitude = std::max(magnitude, std::abs(v));
      low = std::min(low, v);  // 0 is among them
      high = std::max(high, v);
    }
  }
};

// Arithmetic, in units of the largest tap: weights and their products round once each, each sum
// once; 4 ulp are 8 roundings. The weights of cubic sum up to 1.375 squared in magnitude.
double arithmetic_error(const Case& c) {
  if (c.options.mode == GridSampleMode::kNearest) return 0;
  if (c.options.mode == GridSampleMode::kCubic) return 32 * 1.375 * 1.375 * kUnit;
  return (c.sizes.dimensions == 3 ? 14 : 8) * kUnit;
}

// The coordinate's rounding times the largest difference of taps. Cubic: the magnitudes of the
// derivatives of its weights sum to less than 2.6, half of which counts, times 1.375.
double moved_by(const Case& c, const std::vector<double>& g, double difference) {
  double sum = 0;
  for (std::size_t a = 0; a < g.size(); ++a)
    sum += coordinate_error(g[a], c.sizes.in[2 - a], c.options);
  return sum * difference * (c.options.mode == GridSampleMode::kCubic ? 2 : 1);
}

bool same_kind(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : std::isinf(a) ? a == b : std::isfinite(b);
}

template <typename T, typename G>
class Trial {
 public:
  explicit Trial(unsigned seed) : random_(seed), c_(random_case(random_)) {}
  Trial(unsigned seed, const Case& c) : random_(seed), c_(c) {}

  void run() {
    const Against against = random_() % 2 == 0 ? Against::kEnd : Against::kBegin;
    Guarded<T> values(count(c_.sizes.batch * c_.sizes.channels * c_.pixels()), against);
    const std::size_t outputs = count(c_.sizes.batch * c_.sizes.channels * c_.points());
    Guarded<T> out(outputs, against);
    Guarded<G> grid(count(c_.sizes.batch * c_.points() * c_.sizes.dimensions), against);
    fill_values(random_, values);
    for (std::size_t i = 0; i < grid.size(); ++i)
      from_float(random_coordinate(random_, c_.sizes.in[2 - i % count(c_.sizes.dimensions)]),
                 grid[i]);
    ASSERT_EQ(check(c_.options, c_.sizes), "");
    grid_sample(c_.options, c_.sizes,
                GridSampleTensors<T, G>{values.data(), grid.data(), out.data()}, Threads());
    std::vector<std::vector<T>> expected;
    for (int corner = 0; corner <= 1 << c_.sizes.dimensions; ++corner)
      expected.push_back(reference(values, grid, corner));
    for (std::int64_t n = 0; n < c_.sizes.batch; ++n)
      for (std::int64_t ch = 0; ch < c_.sizes.channels; ++ch) {
        const Range<T> range(c_, values, n, ch);
        for (std::int64_t k = 0; k < c_.points(); ++k) {
          expect_close(grid, out, expected, range, n, ch, k);
          if (testing::Test::HasFailure()) return;
        }
      }
  }

 private:
  static std::size_t count(std::int64_t i) { return static_cast<std::size_t>(i); }

  bool on_a_pixel(const std::vector<double>& g) const {
    for (std::size_t a = 0; a < g.size(); ++a) {
      const double size = static_cast<double>(c_.sizes.in[2 - a]);
      const double x =
          c_.options.align_corners ? (g[a] + 1) / 2 * (size - 1) : ((g[a] + 1) * size - 1) / 2;
      if (std::abs(x - std::nearbyint(x)) <= coordinate_error(g[a], c_.sizes.in[2 - a], c_.options))
        return true;
    }
    return false;
  }

  // corner 0: the grid itself; others: moved by the coordinate's rounding to one of the corners of
  // the box around each point.
  std::vector<T> reference(const Guarded<T>& values, const Guarded<G>& grid, int corner) const {
    std::vector<T> out(count(c_.sizes.batch * c_.sizes.channels * c_.points()));
    std::vector<double> moved(grid.size());
    for (std::size_t i = 0; i < grid.size(); ++i) {
      const std::size_t axis = i % count(c_.sizes.dimensions);
      const double g = to_float(grid[i]);
      const auto size = c_.sizes.in[2 - axis];
      const double by = 2 * coordinate_error(g, size, c_.options) / static_cast<double>(size);
      moved[i] = corner == 0 ? g : ((corner - 1) >> axis & 1) != 0 ? g + by : g - by;
    }
    grid_sample_reference(c_.options, c_.sizes,
                          GridSampleTensors<T, double>{values.data(), moved.data(), out.data()});
    return out;
  }

  void expect_close(const Guarded<G>& grid, const Guarded<T>& out,
                    const std::vector<std::vector<T>>& expected, const Range<T>& range,
                    std::int64_t n, std::int64_t ch, std::int64_t k) const {
    const std::size_t at =
        count(c_.options.channels_last ? (n * c_.points() + k) * c_.sizes.channels + ch
                                       : (n * c_.sizes.channels + ch) * c_.points() + k);
    std::vector<double> g;
    const auto dimensions = c_.sizes.dimensions;
    for (int a = 0; a < dimensions; ++a)
      g.push_back(to_float(grid[count((n * c_.points() + k) * dimensions + a)]));
    const double got = to_float(out[at]), want = to_float(expected[0][at]);
    const double limit = arithmetic_error(c_) * range.magnitude +
                         moved_by(c_, g, range.high - range.low) + 2 * storage_error<T>(want);
    const bool steps = c_.options.mode == GridSampleMode::kNearest;
    if (same_kind(want, got) &&
        (!std::isfinite(want) || std::abs(got - want) <= (steps ? 0 : limit)))
      return;
    // On a step (nearest), or where a tap has just got its weight, either side is right.
    for (const auto& other : expected) {
      const double side = to_float(other[at]);
      if (same_kind(side, got) && (!std::isfinite(side) || (steps && side == got))) return;
      if (!steps && std::isfinite(side) && std::abs(got - side) <= limit) return;
    }
    // A tap that rounding gives a weight or takes it from, and whose value is not finite: what is
    // exactly on a pixel has tests of its own.
    if (!steps && !same_kind(want, got) && on_a_pixel(g)) return;
    ADD_FAILURE() << c_.text() << "\n  image " << n << " channel " << ch << " point " << k
                  << " grid " << testing::PrintToString(g) << ": got " << got << ", expected "
                  << want << " within " << limit;
  }

  std::mt19937 random_;
  Case c_;
};

template <typename T, typename G>
void run_trials(unsigned first, unsigned trials) {
  for_each_target([&] {
    for (unsigned seed = first; seed < first + trials; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Trial<T, G>(seed).run();
      if (testing::Test::HasFailure()) return;
    }
  });
}

// 2,000 of each instruction set together.
TEST(GridSampleRandom, Float32) { run_trials<float, float>(0, 1200); }
TEST(GridSampleRandom, Float16) { run_trials<Half, float>(5000, 250); }
TEST(GridSampleRandom, Float16Grid) { run_trials<Half, Half>(6000, 150); }
TEST(GridSampleRandom, Bfloat16) { run_trials<BHalf, float>(7000, 250); }
TEST(GridSampleRandom, Bfloat16Grid) { run_trials<BHalf, BHalf>(8000, 150); }

// More points than one tile of plans takes (16,384 linear, 65,536 nearest, 4,096 cubic): blocks of
// channels are packed before.
TEST(GridSampleRandom, PointsOfSeveralTiles) {
  using enum GridSampleMode;
  const auto sizes = [](int dimensions, std::int64_t batch, std::int64_t channels,
                        std::array<std::int64_t, 3> in, std::array<std::int64_t, 3> out) {
    GridSampleSizes made;
    made.dimensions = dimensions;
    made.batch = batch;
    made.channels = channels;
    made.in = in;
    made.out = out;
    return made;
  };
  const struct {
    GridSampleMode mode;
    GridSampleSizes sizes;
  } kCases[] = {
      {kLinear, sizes(2, 3, 11, {1, 9, 13}, {1, 150, 131})},
      {kLinear, sizes(2, 2, 60, {1, 9, 13}, {1, 150, 128})},  // past the caches
      {kNearest, sizes(3, 1, 9, {5, 6, 7}, {9, 90, 90})},
      {kCubic, sizes(2, 1, 9, {1, 300, 500}, {1, 100, 97})},  // packed in two parts by AVX2
  };
  for_each_target([&] {
    for (const auto& [mode, of_case] : kCases) {
      Case c;
      c.options.mode = mode;
      c.sizes = of_case;
      Trial<float, float>(1, c).run();
      if (testing::Test::HasFailure()) return;
    }
  });
}

}  // namespace
}  // namespace tenonnx
