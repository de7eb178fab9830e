// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Coordinates of a tile of points become offsets and weights once; then each point's four rows of
// channels are widened to 16 bits, weighted in x with 16-bit products, paired and weighted in y
// with 32-bit sums. NCHW values are first copied to blocks of 32 channels, channels last, and a
// tile of the output is transposed on its way out: bytes cannot be gathered from planes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8_lut_grid_sample/int8_lut_grid_sample.cc"
#include "kernels/int8_lut_grid_sample/int8_lut_grid_sample.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace tenonnx::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET != HWY_SCALAR
namespace {

// Points whose taps are computed together: 8 KiB of them, beside which a block's pixels stay in
// the first cache.
constexpr std::int64_t kTile = 256;
// Channels of a repacked block, and points of the piece of output that is transposed at once.
constexpr std::int64_t kBlock = 32, kPiece = 64;
constexpr std::size_t kMostLanes = hn::MaxLanes(hn::CappedTag<std::int16_t, 32>());

struct Taps {
  std::int32_t offset[4][kTile];  // pixels; -1 is outside
  std::uint8_t x[2][kTile], y[2][kTile];
};

struct Output {
  float multiplier;
  std::int32_t minus_zero;  // -65025 * value_zero_point
  std::int16_t zero_point;
};

// Fixed-point coordinates, (x, y) interleaved as in the grid; `count` numbers.
void fixed_points(const Int8LutAxis& axis_x, const Int8LutAxis& axis_y, const float* grid,
                  std::int64_t count, std::int32_t* to) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> df;
  const hn::Rebind<std::int32_t, decltype(d)> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto pair = [&](double x, double y) { return hn::OddEven(hn::Set(d, y), hn::Set(d, x)); };
  const auto scale = pair(axis_x.scale, axis_y.scale), offset = pair(axis_x.offset, axis_y.offset);
  const auto low = pair(axis_x.low, axis_y.low), high = pair(axis_x.high, axis_y.high);
  const auto shift = hn::Set(di, Int8LutAxis::kShift);
  for (std::int64_t i = 0; i < count; i += lanes) {
    const float* from = grid + i;
    float padded[8] = {};
    if (i + lanes > count) {
      std::copy(from, grid + count, padded);
      from = padded;
    }
    // Fused or not makes no difference: the product is exact.
    const auto at = hn::MulAdd(hn::PromoteTo(d, hn::LoadU(df, from)), scale, offset);
    const auto number = hn::IfThenElse(hn::Eq(at, at), at, low);
    const auto inside = hn::Min(hn::Max(number, low), high);
    hn::StoreU(hn::Sub(hn::DemoteTo(di, inside), shift), di, to + i);
  }
}

template <bool kBorder>
void make_taps(const Int8LutGridSample& call, const std::int32_t* HWY_RESTRICT fixed,
               std::int64_t count, Taps& taps) {
  const auto width = static_cast<std::int32_t>(call.width);
  const auto height = static_cast<std::int32_t>(call.height);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t qx = fixed[2 * i], qy = fixed[2 * i + 1];
    std::int32_t x0 = qx >> 8, y0 = qy >> 8, x1 = x0 + 1, y1 = y0 + 1;
    // round(255 f / 256) without a look-up.
    const std::int32_t wx = ((qx & 255) * 255 + 128) >> 8, wy = ((qy & 255) * 255 + 128) >> 8;
    taps.x[0][i] = static_cast<std::uint8_t>(255 - wx);
    taps.x[1][i] = static_cast<std::uint8_t>(wx);
    taps.y[0][i] = static_cast<std::uint8_t>(255 - wy);
    taps.y[1][i] = static_cast<std::uint8_t>(wy);
    if constexpr (kBorder) {  // q lies inside; the neighbour to the right of the last pixel is it
      x1 = std::min(x1, width - 1);
      y1 = std::min(y1, height - 1);
      taps.offset[0][i] = y0 * width + x0;
      taps.offset[1][i] = y0 * width + x1;
      taps.offset[2][i] = y1 * width + x0;
      taps.offset[3][i] = y1 * width + x1;
    } else {
      const auto inside = [](std::int32_t at, std::int32_t size) {
        return static_cast<std::uint32_t>(at) < static_cast<std::uint32_t>(size);
      };
      const bool left = inside(x0, width), right = inside(x1, width);
      const bool above = inside(y0, height), below = inside(y1, height);
      // What lies outside may overflow when multiplied: unsigned wraps.
      const std::uint32_t at = static_cast<std::uint32_t>(y0) * static_cast<std::uint32_t>(width) +
                               static_cast<std::uint32_t>(x0);
      const auto one = [](bool take, std::uint32_t offset) {
        return take ? static_cast<std::int32_t>(offset) : -1;
      };
      const auto row = static_cast<std::uint32_t>(width);
      taps.offset[0][i] = one(left & above, at);
      taps.offset[1][i] = one(right & above, at + 1);
      taps.offset[2][i] = one(left & below, at + row);
      taps.offset[3][i] = one(right & below, at + row + 1);
    }
  }
}

template <class D32>
HWY_INLINE hn::Vec<D32> scaled(D32 d32, hn::Vec<D32> acc, const Output& output,
                               hn::Vec<hn::Rebind<float, D32>>& product) {
  const hn::Rebind<float, D32> df;
  product = hn::Mul(hn::ConvertTo(df, hn::Add(acc, hn::Set(d32, output.minus_zero))),
                    hn::Set(df, output.multiplier));
  const auto limited = hn::Min(hn::Max(product, hn::Set(df, -65536.0F)), hn::Set(df, 65536.0F));
  return hn::NearestInt(limited);
}

// Lanes(d16) channels of one point from its four pixels.
template <class D16, typename T>
HWY_INLINE void sample(D16 d16, const std::int8_t* v00, const std::int8_t* v01,
                       const std::int8_t* v10, const std::int8_t* v11, hn::Vec<D16> x0,
                       hn::Vec<D16> x1, std::int16_t y0, std::int16_t y1, const Output& output,
                       T* out) {
  const hn::RepartitionToWide<D16> d32;
  const hn::Rebind<std::int8_t, D16> d8;
  const auto widened = [&](const std::int8_t* from) {
    return hn::PromoteTo(d16, hn::LoadU(d8, from));
  };
  const auto top = hn::Add(hn::Mul(widened(v00), x0), hn::Mul(widened(v01), x1));
  const auto bottom = hn::Add(hn::Mul(widened(v10), x0), hn::Mul(widened(v11), x1));
  auto low = hn::Zero(d32), high = hn::Zero(d32);
#if HWY_ARCH_ARM
  // Widening products of the lower and upper halves.
  low = hn::ReorderWidenMulAccumulate(d32, top, hn::Set(d16, y0), low, high);
  low = hn::ReorderWidenMulAccumulate(d32, bottom, hn::Set(d16, y1), low, high);
#else
  // Sums of neighbouring products, into the first of the two.
  const auto y01 = hn::BitCast(d16, hn::Set(d32, y0 | y1 << 16));
  auto unused = hn::Zero(d32);
  low = hn::ReorderWidenMulAccumulate(d32, hn::InterleaveLower(d16, top, bottom), y01, low, unused);
  high =
      hn::ReorderWidenMulAccumulate(d32, hn::InterleaveUpper(d16, top, bottom), y01, high, unused);
#endif
  hn::Vec<hn::Rebind<float, decltype(d32)>> product_low, product_high;
  const auto rounded_low = scaled(d32, low, output, product_low);
  const auto rounded_high = scaled(d32, high, output, product_high);
  // Halves of each block of 128 bits, on every instruction set; packing puts them back in order.
  if constexpr (std::is_same_v<T, std::int8_t>) {
    const auto both = hn::ReorderDemote2To(d16, rounded_low, rounded_high);
    hn::StoreU(hn::DemoteTo(d8, hn::SaturatedAdd(both, hn::Set(d16, output.zero_point))), d8, out);
  } else {
    const hn::Rebind<float, decltype(d32)> df;
    constexpr std::size_t kBlocks = hn::MaxLanes(df) / 4;
    HWY_ALIGN float lanes[2][hn::MaxLanes(df)];
    hn::Store(product_low, df, lanes[0]);
    hn::Store(product_high, df, lanes[1]);
    for (std::size_t b = 0; b < kBlocks; ++b) {
      std::memcpy(out + 8 * b, lanes[0] + 4 * b, 16);
      std::memcpy(out + 8 * b + 4, lanes[1] + 4 * b, 16);
    }
  }
}

// `channels` contiguous channels of `count` points from channels-last pixels of `stride` bytes.
// The last vector of channels overlaps the one before.
template <std::size_t kLanes, typename T>
void sample_points(const std::int8_t* value, const std::int8_t* outside, std::int64_t stride,
                   const Taps& taps, std::int64_t begin, std::int64_t count, std::int64_t channels,
                   const Output& output, T* out, std::int64_t out_stride) {
  const hn::CappedTag<std::int16_t, kLanes> d16;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d16));
  for (std::int64_t i = begin; i < begin + count; ++i) {
    const std::int8_t* pixel[4];
    for (int k = 0; k < 4; ++k) {
      const std::int32_t offset = taps.offset[k][i];
      pixel[k] = offset < 0 ? outside : value + offset * stride;
    }
    const auto x0 = hn::Set(d16, static_cast<std::int16_t>(taps.x[0][i]));
    const auto x1 = hn::Set(d16, static_cast<std::int16_t>(taps.x[1][i]));
    const std::int16_t y0 = taps.y[0][i], y1 = taps.y[1][i];
    T* to = out + (i - begin) * out_stride;
    if (channels < lanes) {
      std::int8_t copied[4][kLanes] = {};
      T result[kLanes];
      for (int k = 0; k < 4; ++k)
        std::memcpy(copied[k], pixel[k], static_cast<std::size_t>(channels));
      sample(d16, copied[0], copied[1], copied[2], copied[3], x0, x1, y0, y1, output, result);
      std::memcpy(to, result, static_cast<std::size_t>(channels) * sizeof(T));
      continue;
    }
    for (std::int64_t c = 0; c < channels; c += lanes) {
      const std::int64_t at = std::min(c, channels - lanes);
      sample(d16, pixel[0] + at, pixel[1] + at, pixel[2] + at, pixel[3] + at, x0, x1, y0, y1,
             output, to + at);
    }
  }
}

template <typename... Args>
void sample_points_of(std::int64_t channels, Args&&... args) {
  if constexpr (kMostLanes >= 32) {
    if (channels >= 32) return sample_points<32>(args...);
  }
  if constexpr (kMostLanes >= 16) {
    if (channels >= 16) return sample_points<16>(args...);
  }
  sample_points<8>(args...);
}

// Rows of 16 bytes to columns.
using Bytes = hn::FixedTag<std::int8_t, 16>;
HWY_INLINE void transpose(hn::Vec<Bytes> (&rows)[16]) {
  const Bytes d;
  for (int stage = 0; stage < 4; ++stage) {
    hn::Vec<Bytes> next[16];
    HWY_UNROLL(8)
    for (int i = 0; i < 8; ++i) {
      next[2 * i] = hn::InterleaveLower(d, rows[i], rows[i + 8]);
      next[2 * i + 1] = hn::InterleaveUpper(d, rows[i], rows[i + 8]);
    }
    HWY_UNROLL(16)
    for (int i = 0; i < 16; ++i) rows[i] = next[i];
  }
}

// Planes to one block of channels last; channels that are missing become 0.
void repack(const std::int8_t* planes, std::int64_t pixels, std::int64_t channels,
            std::int8_t* to) {
  const Bytes d;
  for (std::int64_t c = 0; c < kBlock; c += 16) {
    const std::int64_t here = std::clamp<std::int64_t>(channels - c, 0, 16);
    std::int64_t p = 0;
    for (; p + 16 <= pixels; p += 16) {
      hn::Vec<Bytes> rows[16];
      for (std::int64_t i = 0; i < 16; ++i)
        rows[i] = i < here ? hn::LoadU(d, planes + (c + i) * pixels + p) : hn::Zero(d);
      transpose(rows);
      for (std::int64_t i = 0; i < 16; ++i) hn::StoreU(rows[i], d, to + (p + i) * kBlock + c);
    }
    for (; p < pixels; ++p)
      for (std::int64_t i = 0; i < 16; ++i)
        to[p * kBlock + c + i] = i < here ? planes[(c + i) * pixels + p] : std::int8_t{0};
  }
}

// `count` points of kBlock channels to planes of `points`.
void write_planes(const std::int8_t* tile, std::int64_t count, std::int64_t channels,
                  std::int64_t points, std::int8_t* out) {
  const Bytes d;
  for (std::int64_t c = 0; c < channels; c += 16) {
    const std::int64_t here = std::min<std::int64_t>(channels - c, 16);
    for (std::int64_t p = 0; p < count; p += 16) {
      hn::Vec<Bytes> rows[16];
      for (std::int64_t i = 0; i < 16; ++i) rows[i] = hn::LoadU(d, tile + (p + i) * kBlock + c);
      transpose(rows);
      if (p + 16 <= count) {
        for (std::int64_t i = 0; i < here; ++i) hn::StoreU(rows[i], d, out + (c + i) * points + p);
      } else {
        for (std::int64_t i = 0; i < here; ++i) {
          std::int8_t last[16];
          hn::StoreU(rows[i], d, last);
          std::memcpy(out + (c + i) * points + p, last, static_cast<std::size_t>(count - p));
        }
      }
    }
  }
}
void write_planes(const float* tile, std::int64_t count, std::int64_t channels, std::int64_t points,
                  float* out) {
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t p = 0; p < count; ++p) out[c * points + p] = tile[p * kBlock + c];
}

class Sampler {
 public:
  Sampler(const Int8LutGridSample& call, bool int8_output)
      : call_(call),
        axis_x_(Int8LutAxis::of(call.width, call.align_corners, call.padding)),
        axis_y_(Int8LutAxis::of(call.height, call.align_corners, call.padding)),
        output_{call.multiplier(int8_output), -kInt8LutOne * call.value_zero_point,
                static_cast<std::int16_t>(call.out_zero_point)} {}

  // Points [begin, begin + count) of image n, at most kTile.
  void taps(const float* grid, std::int64_t n, std::int64_t begin, std::int64_t count,
            Taps& made) const {
    std::int32_t fixed[2 * kTile + 8];
    fixed_points(axis_x_, axis_y_, grid + 2 * (n * call_.points() + begin), 2 * count, fixed);
    if (call_.padding == Int8LutPadding::kBorder)
      make_taps<true>(call_, fixed, count, made);
    else
      make_taps<false>(call_, fixed, count, made);
  }

  // body(image, first point, count) for each tile of the range of points of all images.
  template <typename Body>
  void for_tiles(const Parallel& parallel, Body&& body) const {
    const std::int64_t points = call_.points(), tiles = (points + kTile - 1) / kTile;
    for_ranges(parallel, call_.batch * tiles, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t t = first; t < last; ++t) {
        const std::int64_t begin = t % tiles * kTile;
        body(t / tiles, begin, std::min(kTile, points - begin));
      }
    });
  }

  template <typename T>
  void channels_last(const std::int8_t* value, const float* grid, T* out,
                     const Parallel& parallel) const {
    const std::int64_t channels = call_.channels;
    static thread_local Scratch scratch;
    auto* outside = scratch.get<std::int8_t>(static_cast<std::size_t>(channels));
    std::memset(outside, call_.value_zero_point, static_cast<std::size_t>(channels));
    for_tiles(parallel, [&](std::int64_t n, std::int64_t begin, std::int64_t count) {
      Taps made;
      taps(grid, n, begin, count, made);
      sample_points_of(channels, value + n * call_.pixels() * channels, outside, channels, made,
                       std::int64_t{0}, count, channels, output_,
                       out + (n * call_.points() + begin) * channels, channels);
    });
  }

  template <typename T>
  void planes(const std::int8_t* value, const float* grid, T* out, const Parallel& parallel) const {
    const std::int64_t channels = call_.channels, pixels = call_.pixels();
    const std::int64_t blocks = (channels + kBlock - 1) / kBlock, points = call_.points();
    // A block of each image: its pixels, then one for what is outside.
    const std::int64_t of_block = (pixels + 1) * kBlock;
    static thread_local Scratch scratch;
    auto* packed =
        scratch.get<std::int8_t>(static_cast<std::size_t>(call_.batch * blocks * of_block));
    for_ranges(parallel, call_.batch * blocks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t c = i % blocks * kBlock;
        std::int8_t* to = packed + i * of_block;
        repack(value + (i / blocks * channels + c) * pixels, pixels, std::min(kBlock, channels - c),
               to);
        std::memset(to + pixels * kBlock, call_.value_zero_point, kBlock);
      }
    });
    for_tiles(parallel, [&](std::int64_t n, std::int64_t begin, std::int64_t count) {
      Taps made;
      taps(grid, n, begin, count, made);
      for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int8_t* from = packed + (n * blocks + b) * of_block;
        for (std::int64_t p = 0; p < count; p += kPiece) {
          HWY_ALIGN T piece[kPiece * kBlock];
          const std::int64_t here = std::min(kPiece, count - p);
          sample_points_of(kBlock, from, from + pixels * kBlock, kBlock, made, p, here, kBlock,
                           output_, piece, kBlock);
          const std::int64_t c = b * kBlock;
          write_planes(piece, here, std::min(kBlock, channels - c), points,
                       out + (n * channels + c) * points + begin + p);
        }
      }
    });
  }

 private:
  const Int8LutGridSample& call_;
  const Int8LutAxis axis_x_, axis_y_;
  const Output output_;
};

template <typename T>
void run(const Int8LutGridSample& call, const std::int8_t* value, const float* grid, T* out,
         const Parallel& parallel) {
  if (call.batch == 0 || call.points() == 0) return;
  const Sampler sampler(call, std::is_same_v<T, std::int8_t>);
  if (call.channels_last)
    sampler.channels_last(value, grid, out, parallel);
  else
    sampler.planes(value, grid, out, parallel);
}

}  // namespace
#else  // one lane has no halves to interleave
namespace {
template <typename T>
void run(const Int8LutGridSample& call, const std::int8_t* value, const float* grid, T* out,
         const Parallel&) {
  int8_lut_grid_sample_reference(call, value, grid, out);
}
}  // namespace
#endif

void run_int8(const Int8LutGridSample& call, const std::int8_t* value, const float* grid,
              std::int8_t* out, const Parallel& parallel) {
  run(call, value, grid, out, parallel);
}
void run_float(const Int8LutGridSample& call, const std::int8_t* value, const float* grid,
               float* out, const Parallel& parallel) {
  run(call, value, grid, out, parallel);
}

}  // namespace tenonnx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenonnx {

HWY_EXPORT(run_int8);
HWY_EXPORT(run_float);

template <>
void int8_lut_grid_sample(const Int8LutGridSample& call, const std::int8_t* value,
                          const float* grid, std::int8_t* out, const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(run_int8)(call, value, grid, out, parallel);
}
template <>
void int8_lut_grid_sample(const Int8LutGridSample& call, const std::int8_t* value,
                          const float* grid, float* out, const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(run_float)(call, value, grid, out, parallel);
}

}  // namespace tenonnx
#endif  // HWY_ONCE
