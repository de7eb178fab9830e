// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// One thread, six cameras [6,256,16,44] to a bird's-eye view of 200 x 200, in each form of the
// grid; the counters are the grid's bytes and the largest movement of a coordinate in pixels.
#include <benchmark/benchmark.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "kernels/static_sample/static_sample.h"

namespace tenonnx {
namespace {

constexpr std::int64_t kImages = 6, kChannels = 256, kHeight = 16, kWidth = 44, kSide = 200;

// A perspective turned by 60 degrees from camera to camera.
std::vector<float> cameras() {
  std::vector<float> grid;
  for (int n = 0; n < kImages; ++n)
    for (int j = 0; j < kSide; ++j)
      for (int i = 0; i < kSide; ++i) {
        const double a = n * std::numbers::pi / 3, x = 2.0 * i / (kSide - 1) - 1,
                     y = 2.0 * j / (kSide - 1) - 1;
        const double u = std::cos(a) * x - std::sin(a) * y, v = std::sin(a) * x + std::cos(a) * y;
        grid.push_back(static_cast<float>(u / (0.6 + 0.3 * v)));
        grid.push_back(static_cast<float>(0.9 * v - 0.2 * u * u));
      }
  return grid;
}

template <typename T>
void sample(benchmark::State& state) {
  const std::vector<float> coordinates = cameras();
  const StaticSource source{coordinates.data(), kImages, kHeight, kWidth, kSide, kSide};
  const StaticEncoding made = kStaticEncoders[state.range(0)](source);
  const StaticSizes sizes{kImages, kChannels, state.range(1) != 0};
  std::vector<T> value(static_cast<std::size_t>(kImages * kChannels * kHeight * kWidth));
  std::vector<T> out(static_cast<std::size_t>(kImages * kChannels * kSide * kSide));
  std::mt19937 random(1);
  for (T& v : value) from_float(std::uniform_real_distribution<float>(-1, 1)(random), v);
  for (auto _ : state) {
    static_sample(made.grid, sizes, value.data(), out.data(), Serial());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(out.size()));
  state.counters["grid_bytes"] = static_cast<double>(made.bytes);
  state.counters["error_pixels"] = made.error_pixels;
}
void arguments(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"form", "channels_last"});  // taps, nearest, int16, blocks
  bench->ArgsProduct({{0, 1, 2, 3}, {0, 1}})->Unit(benchmark::kMillisecond);
}
BENCHMARK(sample<float>)->Name("StaticSample/float32")->Apply(arguments);
BENCHMARK(sample<Half>)->Name("StaticSample/float16")->Apply(arguments);

}  // namespace
}  // namespace tenonnx
