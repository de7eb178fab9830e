// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the block-wise storages share: which points of a block are sampled, and a base for each
// axis, in the arrays state, masks, range and base that grid_storage.h describes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "camera/grid_storage.h"

namespace tenonnx {

inline constexpr std::int64_t kBlockSide = StaticGrid::kBlockSide;
inline constexpr std::int64_t kBlockPoints = kBlockSide * kBlockSide;
inline constexpr std::int64_t kMaskBytes = (kBlockPoints + 7) / 8;

// Points of one block that are sampled.
struct BlockPoint {
  std::int64_t inside;  // 0 to 99
  std::size_t point;    // of all images
};
using Block = std::vector<BlockPoint>;

// The error of `got` against the source, and the bytes of the arrays.
StoredGrid measured(std::string storage, const StaticSource& source, const GridPixels& got,
                    TensorMap arrays);

// All blocks in raster order, empty ones too; points beyond the edge of the output belong to none.
std::vector<Block> blocks_of(const StaticSource& source, const GridPixels& pixels);
void add_states(const StaticSource& source, const std::vector<Block>& blocks, TensorMap& arrays);
// The same from the arrays.
std::vector<Block> blocks_from_states(const StaticSource& source, const TensorMap& arrays);

// 16 bits for each axis over the range of the bases of all live blocks. add() gives back what
// base_of() will say.
std::vector<std::array<double, 2>> add_bases(const std::vector<std::array<double, 2>>& bases,
                                             TensorMap& arrays);
std::array<double, 2> base_of(const TensorMap& arrays, std::int64_t live);

// float16, as it is stored.
double half_rounded(double value);

}  // namespace tenonnx
