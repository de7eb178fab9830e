// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Ways to store a constant grid, with what each costs (bytes) and how far it moves coordinates
// (pixels of the values). Points whose four neighbours all lie outside sample nothing: they need no
// coordinate, only that they stay so.
//
//   float32   as GridSample takes it: 8 bytes a point
//   int16     pixel = offset + step * q: 4 bytes a point (kernels/static_sample)
//   blocks    10 x 10 points with a base, a step and int8 deltas: 2.16 bytes a point (the same)
//   affine    10 x 10 points share a plane for each axis, pixel = a + b * column + c * row; what is
//             left is rounded to a step that the whole grid shares, in as few bits as a block needs
//   codebook  10 x 10 points with a base and a scale for each axis, and the index of one of at most
//             256 patterns of int8 deltas that all blocks share
//
// float32, int16 and blocks are read while sampling (GridSample, tenonnx.StaticSample); affine and
// codebook are for a file or a bus: unpack once, then keep taps or int16.
//
// Arrays of affine and codebook; `live` are the blocks with a point that samples something, in
// raster order, image after image:
//   state     uint8 [blocks]       0: nothing is sampled, 1: every point, 2: those of the next mask
//   masks     uint8 [masks, 13]    bit i % 8 of byte i / 8: point i of the block is sampled
//   range     float32 [4]          base of x, y = range[axis] + range[2 + axis] * q
//   base      uint16 [live, 2]     q of x, y
// and affine:
//   slope     float16 [live, 4]    b, c of x, then of y; column and row count from the block's
//                                  middle, -4.5 to 4.5
//   bits      uint8 [live]         of x + 16 * of y, 0 to 15 each
//   residual  uint8 [..]           the codes of a block, x of all sampled points, then y; low bit
//                                  first: pixel = plane + (code - (2^bits - 1) / 2) * step
//   step      float32 [1]
// codebook:
//   scale     float16 [live, 2]
//   index     uint8 [live]
//   patterns  int8 [patterns, 100, 2]: pixel = base + scale * pattern
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/static_sample/static_sample.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct StoredGrid {
  std::string storage;
  std::int64_t bytes = 0;  // of all arrays
  double max_pixels = 0;   // over both axes of all points that sample something
  double rms_pixels = 0;
  std::int64_t changed = 0;  // points that sample something before or after, and not both
  TensorMap arrays;
};

// The pixels that a stored grid gives: x, y of each point of each image; NaN where nothing is
// sampled.
struct GridPixels {
  std::vector<double> x, y;
};
GridPixels exact_pixels(const StaticSource& source);

StoredGrid store_float32(const StaticSource& source);
StoredGrid store_int16(const StaticSource& source);
StoredGrid store_blocks(const StaticSource& source);
// No coordinate moves by more than `tolerance` pixels, or 1e-4, or what 15 bits make of the point
// that is farthest from its block's plane (2^-15 of its distance), whichever is most. No residual
// is clipped.
StoredGrid store_affine(const StaticSource& source, double tolerance);
// Of all steps (0.2 % apart) whose arrays fit into `bytes`, the one with the smallest largest
// error, which never rises with the bytes; where none fits, the smallest arrays that there are: no
// residuals. No residual is clipped.
StoredGrid store_affine_within(const StaticSource& source, std::int64_t bytes);
// `patterns` of 1 to 256; fewer where there are fewer blocks.
StoredGrid store_codebook(const StaticSource& source, std::int64_t patterns);
// As many patterns as fit into `bytes`; at least one. Patterns are the means of what they stand
// for: a further one lowers the mean error, and may raise the largest.
StoredGrid store_codebook_within(const StaticSource& source, std::int64_t bytes);

// What the arrays alone say; `source` gives sizes, not coordinates.
GridPixels unpack_affine(const StaticSource& source, const TensorMap& arrays);
GridPixels unpack_codebook(const StaticSource& source, const TensorMap& arrays);

}  // namespace tenonnx
