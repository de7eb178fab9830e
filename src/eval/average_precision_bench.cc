// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The size of the example's evaluation: 200 images, 4 classes, 5 objects and 100 detections an
// image.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "eval/average_precision.h"
#include "eval/confidence.h"

namespace tenonnx {
namespace {

struct Data {
  CocoDataset dataset;
  std::vector<CocoResult> results;
};

Data make_data(int images) {
  std::mt19937 random(1);
  const auto below = [&](int n) {
    return static_cast<double>(random() % static_cast<unsigned>(n));
  };
  Data data;
  for (int c = 0; c < 4; ++c) data.dataset.categories.push_back({c, ""});
  for (int i = 0; i < images; ++i) {
    data.dataset.images.push_back({i, "", 160, 160});
    for (int k = 0; k < 5; ++k) {
      const CocoBox box = {below(120), below(120), 10 + below(30), 10 + below(30)};
      const auto id = static_cast<std::int64_t>(data.dataset.annotations.size()) + 1;
      data.dataset.annotations.push_back({id, i, k % 4, box, box[2] * box[3], false, false});
      data.results.push_back({i, k % 4, {box[0] + below(3), box[1], box[2], box[3]}, 0.9});
    }
    for (int k = 0; k < 95; ++k) {
      const CocoBox box = {below(120), below(120), 10 + below(30), 10 + below(30)};
      data.results.push_back({i, k % 4, box, below(1000) / 2000});
    }
  }
  return data;
}

void match(benchmark::State& state) {
  const Data data = make_data(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    auto evaluation = CocoEvaluation::create(data.dataset, data.results);
    benchmark::DoNotOptimize(evaluation);
  }
}
BENCHMARK(match)->Arg(200)->Unit(benchmark::kMillisecond);

void figures(benchmark::State& state) {
  const Data data = make_data(static_cast<int>(state.range(0)));
  const auto evaluation = CocoEvaluation::create(data.dataset, data.results);
  for (auto _ : state) benchmark::DoNotOptimize(evaluation->figures());
}
BENCHMARK(figures)->Arg(200)->Unit(benchmark::kMillisecond);

void bootstrap(benchmark::State& state) {
  const Data data = make_data(static_cast<int>(state.range(0)));
  const auto evaluation = CocoEvaluation::create(data.dataset, data.results);
  for (auto _ : state) benchmark::DoNotOptimize(bootstrap_ap(*evaluation));
}
BENCHMARK(bootstrap)->Arg(200)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace tenonnx
