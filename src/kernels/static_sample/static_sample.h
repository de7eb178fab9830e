// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Grid sampling where the grid is constant. Three forms of the grid, each made from a float grid by
// an encoder here, which also says what it costs (bytes) and how far coordinates move (pixels):
//
//   taps     for each point 4 pixel indices and weights, or 1 (nearest): 32 or 8 bytes a point
//   int16    pixel = offset + step * q for each axis: 4 bytes a point
//   blocks   10 x 10 points share a base and a step for each axis, a point has two int8 deltas:
//            pixel = base + step * delta; 2.16 bytes a point
//
// int16 and blocks are decoded while sampling, a band of points at a time, to bilinear taps. Each
// neighbour is padded on its own: zeros leaves one outside out, border takes the nearest inside. A
// neighbour that is left out or has weight 0 is not read into the result, not even as NaN.
// Encoders move coordinates that sample nothing to 1.5 pixels outside (zeros; NaN too) or to the
// edge (border; NaN to pixel 0), so that only the useful range is quantised.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/parallel.h"
#include "kernels/storage.h"

namespace tenonnx {

enum class StaticFormat { kTaps, kInt16, kBlocks };
enum class StaticPadding { kZeros, kBorder };

struct StaticGrid {
  static constexpr std::int64_t kBlockSide = 10;

  StaticFormat format = StaticFormat::kTaps;
  StaticPadding padding = StaticPadding::kZeros;  // of int16 and blocks
  std::int64_t images = 1;                        // 1: the same grid for all images
  std::int64_t height = 0, width = 0;             // of the values, pixels
  std::int64_t out_height = 0, out_width = 0;
  // taps
  std::int64_t taps = 4;              // of each point, 1 or 4
  std::vector<std::int32_t> indices;  // [images, points, taps]: y * width + x; -1: outside
  std::vector<float> weights;         // [images, points, taps]
  // int16
  std::vector<std::int16_t> coordinates;  // [images, points, 2], (x, y)
  float step[2] = {0, 0}, offset[2] = {0, 0};
  // blocks, in raster order; those at the right and lower edge are whole, too
  std::vector<float> base;         // [images, blocks, 4]: x, y of the base, steps of x, y
  std::vector<std::int8_t> delta;  // [images, blocks, 100, 2]

  std::int64_t points() const { return out_height * out_width; }  // of one image
  std::int64_t blocks_across() const { return (out_width + kBlockSide - 1) / kBlockSide; }
  std::int64_t blocks() const {
    return blocks_across() * ((out_height + kBlockSide - 1) / kBlockSide);
  }
  std::int64_t bytes() const;
  // Empty, or what is wrong: sizes, arrays of another length, an index outside of the image, a
  // coordinate that is not finite or beyond 2^22 pixels. A grid that passes never makes the kernel
  // read outside.
  std::string check() const;
};

// The pixel (x, y) that point `point` of an image has, from int16 and blocks; in double.
struct StaticPixel {
  double x, y;
};
StaticPixel decode(const StaticGrid& grid, std::int64_t image, std::int64_t point);

struct StaticEncoding {
  StaticGrid grid;
  std::int64_t bytes = 0;
  double error_pixels = 0;  // largest distance of a coordinate along an axis; taps: 0 (bilinear)
};

// What to encode: float32 [images, out_height, out_width, 2], (x, y) in -1..1, as GridSample has
// it.
struct StaticSource {
  const float* grid = nullptr;
  std::int64_t images = 1, height = 0, width = 0, out_height = 0, out_width = 0;
  StaticPadding padding = StaticPadding::kZeros;
  bool align_corners = false;
};
StaticEncoding encode_taps(const StaticSource& source);
StaticEncoding encode_nearest(const StaticSource& source);  // one tap, ties to even
StaticEncoding encode_int16(const StaticSource& source);
StaticEncoding encode_blocks(const StaticSource& source);
// All of them, for tests and benchmarks.
inline constexpr StaticEncoding (*kStaticEncoders[])(const StaticSource&) = {
    encode_taps, encode_nearest, encode_int16, encode_blocks};

struct StaticSizes {
  std::int64_t batch = 0, channels = 0;  // grid.images is 1 or batch
  bool channels_last = false;            // [N,H,W,C] to [N,Ho,Wo,C]; else [N,C,H,W] to [N,C,Ho,Wo]
};

// T: float, Half, BHalf; sums are float32. `grid` has passed check().
template <typename T>
void static_sample(const StaticGrid& grid, const StaticSizes& sizes, const T* value, T* out,
                   const Parallel& parallel);

// Plain loops in double, rounded once.
template <typename T>
void static_sample_reference(const StaticGrid& grid, const StaticSizes& sizes, const T* value,
                             T* out);

}  // namespace tenonnx
