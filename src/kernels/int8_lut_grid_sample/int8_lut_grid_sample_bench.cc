// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// One thread. Points times channels a second; the bytes are those of the output.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "kernels/int8_lut_grid_sample/int8_lut_grid_sample.h"

namespace tenonnx {
namespace {

// Six cameras to a bird's-eye view, and three levels of a detector's decoder (300 x 4 points).
const std::vector<std::vector<std::int64_t>> kShapes = {{6, 256, 16, 44, 200, 200},
                                                        {8, 32, 80, 80, 300, 4},
                                                        {8, 32, 40, 40, 300, 4},
                                                        {8, 32, 20, 20, 300, 4}};

template <typename T>
void sample(benchmark::State& state) {
  const auto& shape = kShapes[static_cast<std::size_t>(state.range(0))];
  Int8LutGridSample call;
  call.batch = shape[0], call.channels = shape[1], call.height = shape[2], call.width = shape[3];
  call.out_height = shape[4], call.out_width = shape[5];
  call.channels_last = state.range(1) != 0;
  call.value_scale = call.out_scale = 0.05F;
  std::mt19937 random(1);
  std::vector<std::int8_t> value(
      static_cast<std::size_t>(call.batch * call.channels * call.pixels()));
  std::vector<float> grid(static_cast<std::size_t>(call.batch * call.points() * 2));
  for (auto& v : value) v = static_cast<std::int8_t>(random());
  std::uniform_real_distribution<float> uniform(-1.1F, 1.1F);
  for (float& g : grid) g = uniform(random);
  std::vector<T> out(static_cast<std::size_t>(call.batch * call.channels * call.points()));
  for (auto _ : state) {
    int8_lut_grid_sample(call, value.data(), grid.data(), out.data(), Serial());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(out.size()));
}
void arguments(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"shape", "channels_last"});
  bench->ArgsProduct({{0, 1, 2, 3}, {0, 1}})->Unit(benchmark::kMillisecond);
}
BENCHMARK(sample<std::int8_t>)->Name("Int8LutGridSample/int8")->Apply(arguments);
BENCHMARK(sample<float>)->Name("Int8LutGridSample/float")->Apply(arguments);

}  // namespace
}  // namespace tenonnx
