// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Multi-scale deformable attention (Zhu et al. 2021, "Deformable DETR", equation 3; mmcv and
// transformers compute the same): for each query q and head m
//
//   out[b, q, m, :] = sum over points p of weight[b, q, m, p] * sample(value_level(p)[b, :, m, :],
//   location[b, q, m, p])
//
// The points of a head lie one level after another, `points` of them in each level.
//   bilinear   x = location_x * width - 0.5, y likewise; four neighbours, each one outside of the
//              level counts as zero (grid_sample, zeros, align_corners false)
//   nearest    the pixel at round(x), round(y), ties to even; zero outside
//   discrete   the pixel at int(location * size + 0.5), clamped into the level (D-FINE, RT-DETRv2)
// A value that is not sampled (outside, or with a weight of zero) never reaches the output, not
// even as NaN. A location of NaN or an infinite one samples nothing (bilinear, nearest); `discrete`
// takes NaN for 0.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/parallel.h"
#include "kernels/storage.h"

namespace tenonnx {

enum class MSDeformMode { kBilinear, kNearest, kDiscrete };

struct MSDeformLevel {
  std::int64_t height = 0, width = 0;  // pixels
  std::int64_t points = 0;             // of each head
};

struct MSDeformSizes {
  std::int64_t batch = 0, queries = 0, heads = 0, channels = 0;  // channels of one head
};

// Where sampling locations are given as offsets from reference points:
//   2 coordinates   location = reference + offset / (width, height) of the level
//   4 coordinates   location = reference_xy + offset * reference_wh * 0.5 / points of the level
// (transformers and D-FINE compute these).
struct MSDeformReference {
  std::int64_t levels = 0;       // 1: the same for all levels
  std::int64_t coordinates = 0;  // 2 (x, y) or 4 (centre x, centre y, width, height), 0..1
};

// T: float, Half or BHalf; C: the type of coordinates and weights, float or T. All are contiguous
// and do not overlap.
template <typename T, typename C>
struct MSDeformTensors {
  const T* value = nullptr;  // [batch, sum of height * width, heads, channels]
  const C* locations =
      nullptr;                 // [batch, queries, heads, points, 2], (x, y), 0..1 from edge to edge
  const C* weights = nullptr;  // [batch, queries, heads, points]
  T* out = nullptr;            // [batch, queries, heads, channels]
  // Where set, `locations` holds offsets from it: [batch, queries, levels, coordinates].
  const C* reference = nullptr;
  MSDeformReference reference_kind;
};

// What depends on the shapes alone, made once.
class MSDeformPlan {
 public:
  // Empty, or what is wrong: sizes below one, a level without pixels, more elements than 32-bit
  // offsets reach.
  static std::string check(const std::vector<MSDeformLevel>& levels, const MSDeformSizes& sizes);
  MSDeformPlan(std::vector<MSDeformLevel> levels, const MSDeformSizes& sizes, MSDeformMode mode);

  const std::vector<MSDeformLevel>& levels() const { return levels_; }
  const MSDeformSizes& sizes() const { return sizes_; }
  MSDeformMode mode() const { return mode_; }
  std::int64_t points() const { return points_; }  // of each head, all levels
  std::int64_t keys() const { return keys_; }      // pixels, all levels

  // Of each point of a query (heads * points of them, then up to kPadding so that whole vectors can
  // be loaded). A pixel's value lies at start + y * row + x * (heads * channels), in elements.
  static constexpr std::size_t kPadding = 16;
  struct Tables {
    std::vector<float> width, height;
    std::vector<std::int32_t> start, row;
    std::vector<std::int32_t> level;  // of each of the `points` of one head
  };
  const Tables& tables() const { return tables_; }

 private:
  std::vector<MSDeformLevel> levels_;
  MSDeformSizes sizes_;
  MSDeformMode mode_;
  std::int64_t points_ = 0, keys_ = 0;
  Tables tables_;
};

// The fastest instruction set that the processor has.
template <typename T, typename C>
void ms_deform_attn(const MSDeformPlan& plan, const MSDeformTensors<T, C>& tensors,
                    const Parallel& parallel);

// Plain loops in double, rounded once: what tests compare with.
template <typename T, typename C>
void ms_deform_attn_reference(const MSDeformPlan& plan, const MSDeformTensors<T, C>& tensors);

}  // namespace tenonnx
