// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Kernels allocate nothing after their first call of a size: memory is counted where all of it
// comes from, malloc.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "kernels/grid_sample/grid_sample.h"
#include "kernels/int8_lut_grid_sample/int8_lut_grid_sample.h"
#include "kernels/ms_deform_attn/ms_deform_attn.h"
#include "kernels/static_sample/static_sample.h"
#include "kernels/targets_for_test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENONNX_COUNTS_ALLOCATIONS 0  // a sanitizer has a malloc of its own
#else
#define TENONNX_COUNTS_ALLOCATIONS 1
#endif

#if TENONNX_COUNTS_ALLOCATIONS
namespace {
std::atomic<std::size_t> allocations{0};
}
extern "C" void* __libc_malloc(std::size_t);  // NOLINT: the C library's name
extern "C" void* malloc(std::size_t bytes) {  // NOLINT
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}

namespace tenonnx {
namespace {

template <typename Call>
void expect_no_allocation_after_the_first(Call&& call) {
  for_each_target([&] {
    call();
    const std::size_t before = allocations;
    call();
    call();
    EXPECT_EQ(allocations, before);
  });
}

TEST(Allocations, TheCounterCounts) {
  const std::size_t before = allocations;
  const std::vector<float> some(100);
  EXPECT_EQ(allocations, before + 1) << some.size();
}

TEST(Allocations, GridSample) {
  for (const std::int64_t points : {20, 3000}) {
    for (const bool last : {false, true}) {
      GridSampleSizes sizes;
      sizes.batch = 2, sizes.channels = 20;
      sizes.in = {1, 30, 40}, sizes.out = {1, 1, points};
      GridSampleOptions options;
      options.channels_last = last;
      const std::vector<float> value(2 * 20 * 30 * 40);
      const std::vector<float> grid(static_cast<std::size_t>(2 * points * 2));
      std::vector<float> out(static_cast<std::size_t>(2 * 20 * points));
      expect_no_allocation_after_the_first([&] {
        grid_sample(options, sizes,
                    GridSampleTensors<float, float>{value.data(), grid.data(), out.data()},
                    Serial());
      });
      const std::vector<Half> halves(value.size()), half_grid(grid.size());
      std::vector<Half> half_out(out.size());
      expect_no_allocation_after_the_first([&] {
        grid_sample(options, sizes,
                    GridSampleTensors<Half, Half>{halves.data(), half_grid.data(), half_out.data()},
                    Serial());
      });
    }
  }
}

TEST(Allocations, Int8LutGridSample) {
  for (const bool last : {false, true}) {
    Int8LutGridSample call;
    call.batch = 1, call.channels = 40, call.height = 20, call.width = 30;
    call.out_height = 10, call.out_width = 50;
    call.value_scale = call.out_scale = 0.5F;
    call.channels_last = last;
    const std::vector<std::int8_t> value(40 * 20 * 30);
    const std::vector<float> grid(500 * 2);
    std::vector<std::int8_t> out(500 * 40);
    expect_no_allocation_after_the_first(
        [&] { int8_lut_grid_sample(call, value.data(), grid.data(), out.data(), Serial()); });
  }
}

TEST(Allocations, MSDeformAttn) {
  MSDeformSizes sizes;
  sizes.batch = 1, sizes.queries = 50, sizes.heads = 8, sizes.channels = 32;
  const MSDeformPlan plan({{8, 8, 4}, {4, 4, 4}}, sizes, MSDeformMode::kBilinear);
  const std::vector<float> value(80 * 8 * 32), locations(50 * 8 * 8 * 2), weights(50 * 8 * 8);
  std::vector<float> out(50 * 8 * 32);
  MSDeformTensors<float, float> tensors;
  tensors.value = value.data();
  tensors.locations = locations.data();
  tensors.weights = weights.data();
  tensors.out = out.data();
  expect_no_allocation_after_the_first([&] { ms_deform_attn(plan, tensors, Serial()); });
}

TEST(Allocations, StaticSample) {
  const std::vector<float> points(500 * 2);
  StaticSource source;
  source.grid = points.data();
  source.height = 20, source.width = 30, source.out_height = 10, source.out_width = 50;
  for (auto* encode : {encode_taps, encode_int16, encode_blocks}) {
    for (const bool last : {false, true}) {
      const StaticGrid grid = encode(source).grid;
      const StaticSizes sizes{1, 40, last};
      const std::vector<float> value(40 * 20 * 30);
      std::vector<float> out(500 * 40);
      expect_no_allocation_after_the_first(
          [&] { static_sample(grid, sizes, value.data(), out.data(), Serial()); });
    }
  }
}

}  // namespace
}  // namespace tenonnx
#endif
