// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Sampling at the points of a grid. Source: ONNX GridSample-20 and torch.nn.functional.grid_sample,
// whose order of steps is followed. A coordinate g of the grid, -1..1, is the pixel
//   align_corners 0   ((g + 1) * size - 1) / 2
//   align_corners 1   (g + 1) / 2 * (size - 1)
// zeros: each neighbour outside is not sampled. border, reflection: the coordinate (cubic: each
// neighbour) is moved into the image. nearest rounds ties to even; cubic has a = -0.75. What is
// outside or has weight 0 never reaches the output, not even as NaN. A coordinate of NaN or an
// infinite one: zeros samples nothing, border takes NaN for pixel 0 and infinities for the edge,
// reflection takes all of them for pixel 0.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "kernels/parallel.h"
#include "kernels/storage.h"

namespace tenonnx {

enum class GridSampleMode { kNearest, kLinear, kCubic };
enum class GridSamplePadding { kZeros, kBorder, kReflection };

struct GridSampleOptions {
  GridSampleMode mode = GridSampleMode::kLinear;
  GridSamplePadding padding = GridSamplePadding::kZeros;
  bool align_corners = false;
  bool channels_last = false;  // input and output
};

struct GridSampleSizes {
  int dimensions = 2;  // 2, or 3 (not cubic)
  std::int64_t batch = 0, channels = 0;
  std::array<std::int64_t, 3> in = {1, 1, 1}, out = {1, 1, 1};  // depth (1 of 2), height, width
};

// What is impossible, or empty. Each size of the image is at most 2^24, which float32 counts
// exactly, and an image at most 2^31 - 2 pixels.
std::string check(const GridSampleOptions& options, const GridSampleSizes& sizes);

// T: float, Half or BHalf; G: float or T (the reference: double too). All are contiguous and do not
// overlap.
template <typename T, typename G>
struct GridSampleTensors {
  const T* value = nullptr;  // [batch, channels, in...], or [batch, in..., channels]
  const G* grid = nullptr;   // [batch, out..., dimensions], (x, y) or (x, y, z)
  T* out = nullptr;          // [batch, channels, out...], or [batch, out..., channels]
};

// Plain loops in double, rounded once: what tests compare with.
template <typename T, typename G>
void grid_sample_reference(const GridSampleOptions& options, const GridSampleSizes& sizes,
                           const GridSampleTensors<T, G>& tensors);

// Computed in float32. Memory is kept by each thread from call to call; none is allocated after the
// first call of a size.
template <typename T, typename G>
void grid_sample(const GridSampleOptions& options, const GridSampleSizes& sizes,
                 const GridSampleTensors<T, G>& tensors, const Parallel& parallel);

}  // namespace tenonnx
