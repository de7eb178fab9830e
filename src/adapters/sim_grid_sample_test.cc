// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// replace_grid_sample_gather on a device that computes in float16: the form that it chooses by the
// index arithmetic is the one that reads the right pixels there.
#include <gtest/gtest.h>

#include "adapters/address.h"
#include "passes/grid_sample_test_support.h"

namespace tenonnx {
namespace {

// The share of the points of an 80 x 80 grid, each on the middle of its pixel, that read another
// one. Values are the row and the column, which float16 holds. The last two points stand on the
// first pixel: float16 makes 6,400 of their indices, which is outside.
double wrong_share(const PassOptions& options) {
  GridSampleCase c;
  c.batch = 1;
  c.channels = 2;
  c.height = c.width = c.out_height = c.out_width = 80;
  c.mode = "nearest";
  Tensor value(DType::kFloat32, c.value_shape()), grid(DType::kFloat32, c.grid_shape());
  for (std::int64_t y = 0; y < 80; ++y)
    for (std::int64_t x = 0; x < 80; ++x) {
      const std::int64_t at = y * 80 + x;
      value.mutable_data<float>()[at] = float(y);
      value.mutable_data<float>()[6400 + at] = float(x);
      const bool last = at >= 6398;
      grid.mutable_data<float>()[2 * at] = grid_coordinate(last ? 0 : double(x), 80, false);
      grid.mutable_data<float>()[2 * at + 1] = grid_coordinate(last ? 0 : double(y), 80, false);
    }
  Model model = c.model();
  EXPECT_EQ(run_pass(model, "replace_grid_sample_gather", options).applied, 1);
  const auto executor = make_executor("sim:htp-v73");
  EXPECT_TRUE(executor.ok()) << executor.status().message();
  if (!executor.ok()) return -1;
  const auto loaded = (*executor)->load(model, {});
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  if (!loaded.ok()) return -1;
  const auto outputs = (*loaded)->run({{"value", value}, {"grid", grid}});
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  if (!outputs.ok()) return -1;
  const float* out = outputs->at("y").data<float>();
  std::int64_t wrong = 0;
  for (std::int64_t at = 0; at < 6398; ++at)
    wrong += out[at] != value.data<float>()[at] || out[6400 + at] != value.data<float>()[6400 + at];
  return double(wrong) / 6400;
}

TEST(SimGridSample, FlatIndicesInFloat16ReadOtherPixels) {
  // y * 80 is exact, its sum with x is rounded to a multiple of 2 beyond 2,048 and of 4 beyond
  // 4,096: a half of 2,048 and three quarters of 2,304 indices of 6,400 are others, 43 %.
  EXPECT_NEAR(wrong_share({{"index_arithmetic", "float32"}}), (1024 + 1728) / 6400.0, 0.002);
  EXPECT_EQ(wrong_share({{"index_arithmetic", "float16"}}), 0);
  EXPECT_EQ(wrong_share({{"device", "htp-v73"}}), 0);
  // Indices that are computed in integers stay exact on a device that has integers.
  EXPECT_EQ(wrong_share({{"index_arithmetic", "int32"}}), 0);
}

}  // namespace
}  // namespace tenonnx
