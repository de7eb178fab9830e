// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A band of points is decoded into taps in memory of the thread, only those that sample something;
// then each point's rows of channels are added up; NCHW values by blocks.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/static_sample/static_sample.cc"
#include "kernels/static_sample/static_sample.h"

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/blocks-inl.h"
#include "kernels/scratch.h"
#include "kernels/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenonnx::HWY_NAMESPACE {
namespace {

using Floats = hn::CappedTag<float, 16>;
constexpr std::int64_t kSide = StaticGrid::kBlockSide;
constexpr std::int64_t kBand = 1024;  // points of a band where the form does not give one

struct Taps {  // of one point
  std::int32_t pixel[4];
  float weight[4];
  std::int32_t count;
};

// Taps of the pixel (x, y), which check() keeps within 2^22.
HWY_INLINE void bilinear(const StaticGrid& grid, float x, float y, Taps& taps) {
  const auto width = static_cast<std::int32_t>(grid.width);
  const auto height = static_cast<std::int32_t>(grid.height);
  std::int32_t ix = static_cast<std::int32_t>(x), iy = static_cast<std::int32_t>(y);
  ix -= static_cast<float>(ix) > x;
  iy -= static_cast<float>(iy) > y;
  const float dx = x - static_cast<float>(ix), dy = y - static_cast<float>(iy);
  const float wx[2] = {1 - dx, dx}, wy[2] = {1 - dy, dy};
  std::int32_t count = 0;
  const bool border = grid.padding == StaticPadding::kBorder;
  for (int j = 0; j < 2; ++j)
    for (int i = 0; i < 2; ++i) {
      std::int32_t px = ix + i, py = iy + j;
      if (border) {
        px = std::clamp(px, 0, width - 1);
        py = std::clamp(py, 0, height - 1);
      }
      const float weight = wx[i] * wy[j];
      const bool inside = static_cast<std::uint32_t>(px) < static_cast<std::uint32_t>(width) &&
                          static_cast<std::uint32_t>(py) < static_cast<std::uint32_t>(height);
      if (!inside || weight == 0) continue;
      taps.pixel[count] = py * width + px;
      taps.weight[count] = weight;
      ++count;
    }
  taps.count = count;
}

// Points [begin, begin + count) of an image.
void decode_taps(const StaticGrid& grid, std::int64_t image, std::int64_t begin, std::int64_t count,
                 Taps* to) {
  const std::int64_t first = image * grid.points() + begin;
  if (grid.format == StaticFormat::kTaps) {
    const std::int32_t* index = grid.indices.data() + first * grid.taps;
    const float* weight = grid.weights.data() + first * grid.taps;
    for (std::int64_t p = 0; p < count; ++p) {
      std::int32_t kept = 0;
      for (std::int64_t t = 0; t < grid.taps; ++t, ++index, ++weight) {
        if (*index < 0 || *weight == 0) continue;
        to[p].pixel[kept] = *index;
        to[p].weight[kept++] = *weight;
      }
      to[p].count = kept;
    }
    return;
  }
  if (grid.format == StaticFormat::kInt16) {
    const std::int16_t* q = grid.coordinates.data() + 2 * first;
    for (std::int64_t p = 0; p < count; ++p)
      bilinear(grid, grid.offset[0] + grid.step[0] * static_cast<float>(q[2 * p]),
               grid.offset[1] + grid.step[1] * static_cast<float>(q[2 * p + 1]), to[p]);
    return;
  }
  // A band of blocks: `begin` is the first point of a row of them, `count` whole rows of points.
  const std::int64_t across = grid.blocks_across(), rows = count / grid.out_width;
  const std::int64_t block = image * grid.blocks() + begin / grid.out_width / kSide * across;
  for (std::int64_t b = 0; b < across; ++b) {
    const float* base = grid.base.data() + 4 * (block + b);
    const std::int8_t* delta = grid.delta.data() + 2 * (block + b) * kSide * kSide;
    const std::int64_t columns = std::min(kSide, grid.out_width - b * kSide);
    for (std::int64_t j = 0; j < rows; ++j)
      for (std::int64_t i = 0; i < columns; ++i) {
        const std::int8_t* d = delta + 2 * (j * kSide + i);
        bilinear(grid, base[0] + base[2] * static_cast<float>(d[0]),
                 base[1] + base[3] * static_cast<float>(d[1]),
                 to[j * grid.out_width + b * kSide + i]);
      }
  }
}

template <int kCount, typename T, typename O>
HWY_INLINE void add_up(const T* value, std::int64_t stride, const Taps& taps, std::int64_t channels,
                       O* out) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* from[4] = {};
  for (int t = 0; t < kCount; ++t) from[t] = value + taps.pixel[t] * stride;
  if (channels < lanes) {
    for (std::int64_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (int t = 0; t < kCount; ++t) sum += taps.weight[t] * to_float(from[t][c]);
      from_float(sum, out[c]);
    }
    return;
  }
  // The last vector overlaps the one before.
  for (std::int64_t c = 0; c < channels; c += lanes) {
    const std::int64_t at = std::min(c, channels - lanes);
    auto sum = hn::Zero(d);
    HWY_UNROLL(4)
    for (int t = 0; t < kCount; ++t)
      sum = hn::MulAdd(load(d, from[t] + at), hn::Set(d, taps.weight[t]), sum);
    store(d, sum, out + at);
  }
}

template <typename T, typename O>
HWY_INLINE void sample_point(const T* value, std::int64_t stride, const Taps& taps,
                             std::int64_t channels, O* out) {
  switch (taps.count) {
    case 0:
      return add_up<0>(value, stride, taps, channels, out);
    case 1:
      return add_up<1>(value, stride, taps, channels, out);
    case 2:
      return add_up<2>(value, stride, taps, channels, out);
    case 3:
      return add_up<3>(value, stride, taps, channels, out);
    default:
      return add_up<4>(value, stride, taps, channels, out);
  }
}

// body(image, first point, count, taps) for each band of all images.
template <typename Body>
void for_bands(const StaticGrid& grid, std::int64_t batch, const Parallel& parallel, Body&& body) {
  const std::int64_t points = grid.points();
  const std::int64_t band =
      grid.format == StaticFormat::kBlocks ? kSide * grid.out_width : std::min(kBand, points);
  const std::int64_t bands = (points + band - 1) / band;
  for_ranges(parallel, batch * bands, 1, [&](std::int64_t first, std::int64_t last) {
    static thread_local Scratch scratch;
    Taps* taps = scratch.get<Taps>(static_cast<std::size_t>(band));
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t n = i / bands, begin = i % bands * band;
      const std::int64_t count = std::min(band, points - begin);
      decode_taps(grid, grid.images == 1 ? 0 : n, begin, count, taps);
      body(n, begin, count, taps);
    }
  });
}

// Four taps, always: those that are missing are the block's last pixel, which is 0. A loop over
// their number would be predicted wrongly at every border.
HWY_INLINE blocks::VF sample_block(const float* HWY_RESTRICT block, const Taps& taps) {
  const blocks::F d;
  auto sum = hn::Zero(d);
  HWY_UNROLL(4)
  for (int t = 0; t < 4; ++t)
    sum = hn::MulAdd(hn::Load(d, block + std::int64_t{taps.pixel[t]} * blocks::kLanes),
                     hn::Set(d, taps.weight[t]), sum);
  return sum;
}

void fill_up(std::int64_t pixels, std::int64_t count, Taps* taps) {
  for (std::int64_t p = 0; p < count; ++p)
    for (std::int32_t t = taps[p].count; t < 4; ++t) {
      taps[p].pixel[t] = static_cast<std::int32_t>(pixels);
      taps[p].weight[t] = 0;
    }
}

template <typename T>
void planes(const StaticGrid& grid, const StaticSizes& sizes, const T* value, T* out,
            const Parallel& parallel) {
  constexpr std::int64_t kLanes = blocks::kLanes;
  const std::int64_t channels = sizes.channels, pixels = grid.height * grid.width;
  const std::int64_t count_blocks = (channels + kLanes - 1) / kLanes, points = grid.points();
  const std::int64_t of_block = (pixels + 1) * kLanes;
  // Blocks that are packed at a time: taps are decoded once for all of these.
  constexpr std::int64_t kMostFloats = std::int64_t{1} << 24;  // 64 MiB, kept by the thread
  const std::int64_t at_a_time =
      std::clamp(kMostFloats / (sizes.batch * of_block), std::int64_t{1}, count_blocks);
  static thread_local Scratch scratch;
  float* packed = scratch.get<float>(static_cast<std::size_t>(sizes.batch * at_a_time * of_block));
  for (std::int64_t from = 0; from < count_blocks; from += at_a_time) {
    const std::int64_t here = std::min(at_a_time, count_blocks - from);
    for_ranges(parallel, sizes.batch * here, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t c = (from + i % here) * kLanes;
        blocks::pack_block(value + (i / here * channels + c) * pixels, pixels,
                           std::min(kLanes, channels - c), packed + i * of_block);
      }
    });
    for_bands(grid, sizes.batch, parallel,
              [&](std::int64_t n, std::int64_t begin, std::int64_t count, Taps* taps) {
                fill_up(pixels, count, taps);
                for (std::int64_t b = 0; b < here; ++b) {
                  const float* block = packed + (n * here + b) * of_block;
                  const std::int64_t c = (from + b) * kLanes;
                  T* to = out + (n * channels + c) * points + begin;
                  // Bands that do not begin at a whole vector are not aligned alike.
                  const std::int64_t head =
                      begin % kLanes == 0
                          ? blocks::streamed_head(to, points, sizes.batch * channels * points)
                          : -1;
                  const std::int64_t group_of = head >= 0 ? head : kLanes;
                  const auto sample = [&](std::int64_t group, std::int64_t i) HWY_ATTR {
                    const std::int64_t at = group == 0 ? i : group_of + (group - 1) * kLanes + i;
                    return sample_block(block, taps[at]);
                  };
                  const std::int64_t width = std::min(kLanes, channels - c);
                  if (head >= 0)
                    blocks::write_block<true>(width, head, count, to, points, sample);
                  else
                    blocks::write_block<false>(width, kLanes, count, to, points, sample);
                }
                hwy::FlushStream();
              });
  }
}

template <typename T>
void run(const StaticGrid& grid, const StaticSizes& sizes, const T* value, T* out,
         const Parallel& parallel) {
  if (sizes.batch == 0 || sizes.channels == 0 || grid.points() == 0) return;
  // One channel lies in memory as a last one does.
  if (!sizes.channels_last && sizes.channels > 1) return planes(grid, sizes, value, out, parallel);
  const std::int64_t channels = sizes.channels, pixels = grid.height * grid.width;
  for_bands(grid, sizes.batch, parallel,
            [&](std::int64_t n, std::int64_t begin, std::int64_t count, const Taps* taps) {
              T* to = out + (n * grid.points() + begin) * channels;
              for (std::int64_t p = 0; p < count; ++p)
                sample_point(value + n * pixels * channels, channels, taps[p], channels,
                             to + p * channels);
            });
}

}  // namespace

void run_float(const StaticGrid& grid, const StaticSizes& sizes, const float* value, float* out,
               const Parallel& parallel) {
  run(grid, sizes, value, out, parallel);
}
void run_half(const StaticGrid& grid, const StaticSizes& sizes, const Half* value, Half* out,
              const Parallel& parallel) {
  run(grid, sizes, value, out, parallel);
}
void run_bhalf(const StaticGrid& grid, const StaticSizes& sizes, const BHalf* value, BHalf* out,
               const Parallel& parallel) {
  run(grid, sizes, value, out, parallel);
}

}  // namespace tenonnx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenonnx {

HWY_EXPORT(run_float);
HWY_EXPORT(run_half);
HWY_EXPORT(run_bhalf);

template <>
void static_sample(const StaticGrid& grid, const StaticSizes& sizes, const float* value, float* out,
                   const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(run_float)(grid, sizes, value, out, parallel);
}
template <>
void static_sample(const StaticGrid& grid, const StaticSizes& sizes, const Half* value, Half* out,
                   const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(run_half)(grid, sizes, value, out, parallel);
}
template <>
void static_sample(const StaticGrid& grid, const StaticSizes& sizes, const BHalf* value, BHalf* out,
                   const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(run_bhalf)(grid, sizes, value, out, parallel);
}

}  // namespace tenonnx
#endif  // HWY_ONCE
