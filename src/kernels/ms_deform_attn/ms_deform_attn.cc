// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Two stages for each query. Coordinates: a vector holds 16 (8, 4) points, which go over the heads
// without a gap since they lie so in memory; four offsets and four weights of each are stored,
// about 0.5 ns a point with AVX-512. Sums: for each head its points' four pixels of `channels`
// contiguous values are added up in registers; nothing else reads or writes memory, and it runs at
// the speed of gathering from the second or third cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ms_deform_attn/ms_deform_attn.cc"
#include "kernels/ms_deform_attn/ms_deform_attn.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/scratch.h"
#include "kernels/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenonnx::HWY_NAMESPACE {
namespace {

using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
constexpr int kMostLanes = static_cast<int>(hn::MaxLanes(Floats()));

// Of the points of one query, structure of arrays: tap k of point i has offset[k * stride + i] and
// weight[k * stride + i]. One tap of each but in bilinear mode.
struct Taps {
  std::int32_t* offset;
  float* weight;
  std::size_t stride;
};

HWY_INLINE hn::Vec<Ints> pixel_offset(hn::Vec<Ints> start, hn::Vec<Ints> y, hn::Vec<Ints> row,
                                      hn::Vec<Ints> x, hn::Vec<Ints> column) {
  return hn::Add(hn::Add(start, hn::Mul(y, row)), hn::Mul(x, column));
}

struct CoordinateTables {
  const float *width, *height;
  const std::int32_t *start, *row;
  std::int32_t column;
};

// The points at [i, i + Lanes) of the query. Returns which of them sample something.
HWY_INLINE hn::Mask<Floats> bilinear_taps(const CoordinateTables& tables, std::size_t i,
                                          hn::Vec<Floats> location_x, hn::Vec<Floats> location_y,
                                          hn::Vec<Floats> weight, const Taps& taps) {
  const Floats d;
  const Ints di;
  const auto zero = hn::Zero(d), one = hn::Set(d, 1.0F), half = hn::Set(d, -0.5F);
  const auto width = hn::LoadU(d, tables.width + i), height = hn::LoadU(d, tables.height + i);
  const auto x = hn::MulAdd(location_x, width, half), y = hn::MulAdd(location_y, height, half);
  // False for NaN.
  const auto alive = hn::And(
      hn::And(hn::And(hn::Gt(x, hn::Neg(one)), hn::Lt(x, width)), hn::Not(hn::Eq(weight, zero))),
      hn::And(hn::Gt(y, hn::Neg(one)), hn::Lt(y, height)));
  const auto x0 = hn::Floor(x), y0 = hn::Floor(y);
  const auto dx = hn::Sub(x, x0), dy = hn::Sub(y, y0);
  // A neighbour outside has no weight; its offset becomes that of the one beside it, which has
  // some, so that nothing is read that is not sampled.
  const auto has_left = hn::Ge(x0, zero), has_above = hn::Ge(y0, zero);
  const auto left = hn::IfThenElseZero(has_left, hn::Sub(one, dx));
  const auto above = hn::Mul(weight, hn::IfThenElseZero(has_above, hn::Sub(one, dy)));
  const auto has_right = hn::And(hn::Lt(hn::Add(x0, one), width), hn::Gt(dx, zero));
  const auto has_below = hn::And(hn::Lt(hn::Add(y0, one), height), hn::Gt(dy, zero));
  const auto right = hn::IfThenElseZero(has_right, dx);
  const auto below = hn::Mul(weight, hn::IfThenElseZero(has_below, dy));
  const auto ix = hn::ConvertTo(di, x0), iy = hn::ConvertTo(di, y0);
  const auto next_x = hn::Add(ix, hn::Set(di, 1)), next_y = hn::Add(iy, hn::Set(di, 1));
  const auto x_left = hn::IfThenElse(hn::RebindMask(di, has_left), ix, next_x);
  const auto x_right = hn::IfThenElse(hn::RebindMask(di, has_right), next_x, ix);
  const auto y_above = hn::IfThenElse(hn::RebindMask(di, has_above), iy, next_y);
  const auto y_below = hn::IfThenElse(hn::RebindMask(di, has_below), next_y, iy);
  const auto start = hn::LoadU(di, tables.start + i), row = hn::LoadU(di, tables.row + i);
  const auto column = hn::Set(di, tables.column);
  const auto alive_i = hn::RebindMask(di, alive);
  const auto put = [&](std::size_t k, hn::Vec<Ints> at_y, hn::Vec<Ints> at_x, hn::Vec<Floats> w) {
    hn::StoreU(hn::IfThenElseZero(alive_i, pixel_offset(start, at_y, row, at_x, column)), di,
               taps.offset + k * taps.stride + i);
    hn::StoreU(hn::IfThenElseZero(alive, w), d, taps.weight + k * taps.stride + i);
  };
  put(0, y_above, x_left, hn::Mul(above, left));
  put(1, y_above, x_right, hn::Mul(above, right));
  put(2, y_below, x_left, hn::Mul(below, left));
  put(3, y_below, x_right, hn::Mul(below, right));
  return alive;
}

HWY_INLINE hn::Mask<Floats> single_taps(MSDeformMode mode, const CoordinateTables& tables,
                                        std::size_t i, hn::Vec<Floats> location_x,
                                        hn::Vec<Floats> location_y, hn::Vec<Floats> weight,
                                        const Taps& taps) {
  const Floats d;
  const Ints di;
  const auto zero = hn::Zero(d), one = hn::Set(d, 1.0F), half = hn::Set(d, 0.5F);
  const auto width = hn::LoadU(d, tables.width + i), height = hn::LoadU(d, tables.height + i);
  hn::Vec<Floats> x, y;
  auto alive = hn::Not(hn::Eq(weight, zero));
  if (mode == MSDeformMode::kDiscrete) {
    // Truncation towards zero and clamping give the same as clamping and truncation.
    const auto index = [&](hn::Vec<Floats> location, hn::Vec<Floats> size) {
      const auto at = hn::MulAdd(location, size, half);
      const auto number = hn::IfThenElseZero(hn::Eq(at, at), at);
      return hn::Min(hn::Max(number, zero), hn::Sub(size, one));
    };
    x = hn::Trunc(index(location_x, width));
    y = hn::Trunc(index(location_y, height));
  } else {
    x = hn::Round(hn::Sub(hn::Mul(location_x, width), half));
    y = hn::Round(hn::Sub(hn::Mul(location_y, height), half));
    alive = hn::And(alive, hn::And(hn::And(hn::Ge(x, zero), hn::Lt(x, width)),
                                   hn::And(hn::Ge(y, zero), hn::Lt(y, height))));
  }
  const auto start = hn::LoadU(di, tables.start + i), row = hn::LoadU(di, tables.row + i);
  const auto offset = pixel_offset(start, hn::ConvertTo(di, y), row, hn::ConvertTo(di, x),
                                   hn::Set(di, tables.column));
  hn::StoreU(hn::IfThenElseZero(hn::RebindMask(di, alive), offset), di, taps.offset + i);
  hn::StoreU(hn::IfThenElseZero(alive, weight), d, taps.weight + i);
  return alive;
}

// Points of one query in `locations` and `weights`, none of which is read beyond its end. Bit i of
// `alive` says whether point i samples something.
void compute_taps(MSDeformMode mode, const CoordinateTables& tables, const float* locations,
                  const float* weights, std::size_t count, const Taps& taps, std::uint64_t* alive) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < count; i += lanes) {
    const float* from = locations + 2 * i;
    const float* weight = weights + i;
    HWY_ALIGN float padded[3 * 16];
    if (i + lanes > count) {
      const std::size_t left = count - i;
      for (std::size_t j = 0; j < lanes; ++j) {
        const std::size_t k = j < left ? j : 0;
        padded[2 * j] = from[2 * k];
        padded[2 * j + 1] = from[2 * k + 1];
        padded[32 + j] = weight[k];
      }
      from = padded;
      weight = padded + 32;
    }
    hn::Vec<Floats> x, y;
    hn::LoadInterleaved2(d, from, x, y);
    const auto w = hn::LoadU(d, weight);
    const auto mask = mode == MSDeformMode::kBilinear ? bilinear_taps(tables, i, x, y, w, taps)
                                                      : single_taps(mode, tables, i, x, y, w, taps);
    std::uint64_t bits = 0;  // of at most 16 lanes, which divide 64
    hn::StoreMaskBits(d, mask, reinterpret_cast<std::uint8_t*>(&bits));
    if (i % 64 == 0) alive[i / 64] = 0;
    alive[i / 64] |= bits << (i % 64);
  }
}

// Keeps the compiler from writing the address, base plus four times an index, into each instruction
// that loads from it: these are then split in two inside of the processor (encoder: 5 to 14 %).
template <typename T>
HWY_INLINE void in_register([[maybe_unused]] T*& pointer) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  asm("" : "+r"(pointer));  // NOLINT(hicpp-no-assembler)
#endif
}

// Sums the taps of `points` points over kVectors vectors of `channels`, then kTail (0 or a part of
// a vector) more, from `value`.
template <int kTaps, int kVectors, int kTail, typename T>
HWY_INLINE void sum_columns(const T* HWY_RESTRICT value, const Taps& taps, std::size_t points,
                            T* HWY_RESTRICT out) {
  const Floats d;
  constexpr int kTailLanes = kTail == 0 ? 1 : kTail;
  const hn::CappedTag<float, kTailLanes> dt;
  const std::size_t lanes = hn::Lanes(d);
  // Two chains of additions each, as long as registers last: a fused multiply-add takes four
  // cycles, and two can begin in each.
  constexpr int kChains = kTaps == 1 || kVectors * 2 > kMostLanes ? 1 : 2;
  constexpr int kSums = kVectors == 0 ? 1 : kVectors;
  hn::Vec<Floats> sums[kChains][kSums];
  hn::Vec<hn::CappedTag<float, kTailLanes>> tails[kChains];
  for (int c = 0; c < kChains; ++c) {
    for (int v = 0; v < kVectors; ++v) sums[c][v] = hn::Zero(d);
    tails[c] = hn::Zero(dt);
  }
  for (std::size_t p = 0; p < points; ++p) {
    HWY_UNROLL(4)
    for (int k = 0; k < kTaps; ++k) {
      const T* from = value + taps.offset[static_cast<std::size_t>(k) * taps.stride + p];
      const float* weight = taps.weight + static_cast<std::size_t>(k) * taps.stride + p;
      in_register(from);
      const auto w = hn::Set(d, *weight);
      const int c = k % kChains;
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v)
        sums[c][v] = hn::MulAdd(load(d, from + static_cast<std::size_t>(v) * lanes), w, sums[c][v]);
      if constexpr (kTail > 0)
        tails[c] = hn::MulAdd(load(dt, from + kVectors * lanes), hn::Set(dt, *weight), tails[c]);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    auto sum = sums[0][v];
    if constexpr (kChains == 2) sum = hn::Add(sum, sums[1][v]);
    store(d, sum, out + static_cast<std::size_t>(v) * lanes);
  }
  if constexpr (kTail > 0) {
    auto sum = tails[0];
    if constexpr (kChains == 2) sum = hn::Add(sum, tails[1]);
    store(dt, sum, out + kVectors * lanes);
  }
}

template <typename T>
using Sum = void (*)(const T*, const Taps&, std::size_t, T*);

template <int kTaps, typename T>
void sum_one(const T* value, const Taps& taps, std::size_t points, T* out) {
  float sum = 0;
  for (std::size_t p = 0; p < points; ++p)
    for (std::size_t k = 0; k < kTaps; ++k)
      sum += taps.weight[k * taps.stride + p] * to_float(value[taps.offset[k * taps.stride + p]]);
  from_float(sum, *out);
}

template <int kTaps, int kVectors, typename T>
Sum<T> sum_with_tail(std::int64_t tail) {
  constexpr int kLanes = kMostLanes;
  if constexpr (kLanes >= 8) {
    if (tail >= kLanes / 2) return &sum_columns<kTaps, kVectors, kLanes / 2, T>;
  }
  return &sum_columns<kTaps, kVectors, 0, T>;
}

// The largest piece of at most `left` channels, and how many it takes.
template <int kTaps, typename T>
Sum<T> choose(std::int64_t left, std::int64_t& taken) {
  constexpr int kLanes = kMostLanes;
  const std::int64_t vectors = left / kLanes, tail = left % kLanes;
  const bool half = tail >= kLanes / 2 && kLanes >= 8;
  const auto take = [&](std::int64_t whole, bool with_half, Sum<T> sum) {
    taken = whole * kLanes + (with_half ? kLanes / 2 : 0);
    return sum;
  };
  if (vectors >= 8) return take(8, false, &sum_columns<kTaps, 8, 0, T>);
  if (vectors >= 6) return take(6, false, &sum_columns<kTaps, 6, 0, T>);
  if (vectors >= 4) return take(4, false, &sum_columns<kTaps, 4, 0, T>);
  if (vectors == 3) return take(3, half, sum_with_tail<kTaps, 3, T>(tail));
  if (vectors == 2) return take(2, half, sum_with_tail<kTaps, 2, T>(tail));
  if (vectors == 1) return take(1, half, sum_with_tail<kTaps, 1, T>(tail));
  if constexpr (kLanes >= 8) {
    if (half) return take(0, true, &sum_columns<kTaps, 0, kLanes / 2, T>);
  }
  if constexpr (kLanes >= 16) {
    if (left >= 4) {
      taken = 4;
      return &sum_columns<kTaps, 0, 4, T>;
    }
  }
  taken = 1;
  return &sum_one<kTaps, T>;
}

template <int kTaps, typename T>
void sum_head(const T* value, const Taps& taps, std::size_t points, std::int64_t channels, T* out,
              Sum<T> first, std::int64_t first_taken) {
  first(value, taps, points, out);
  for (std::int64_t c = first_taken; c < channels;) {
    std::int64_t taken = 0;
    const Sum<T> sum = choose<kTaps, T>(channels - c, taken);
    sum(value + c, taps, points, out + c);
    c += taken;
  }
}

bool is_alive(const std::uint64_t* alive, std::size_t point) {
  return (alive[point / 64] >> (point % 64) & 1) != 0;
}

// Moves those of the points [begin, begin + count) that sample something to the front, by putting
// the last ones into the gaps: most heads have none, or few. Returns how many there are.
template <int kTaps>
std::size_t close_gaps(const std::uint64_t* alive, std::size_t begin, std::size_t count,
                       const Taps& taps) {
  std::size_t last = count;
  for (std::size_t p = 0; p < last; ++p) {
    // The next point without a sample, 64 at a time.
    const std::size_t at = begin + p, shift = at % 64;
    const std::uint64_t dead = ~alive[at / 64] >> shift;
    if (dead == 0) {
      p += 63 - shift;
      continue;
    }
    p += static_cast<std::size_t>(std::countr_zero(dead));
    if (p >= last) break;
    do --last;
    while (last > p && !is_alive(alive, begin + last));
    for (int k = 0; k < kTaps; ++k) {
      const std::size_t row = static_cast<std::size_t>(k) * taps.stride + begin;
      taps.offset[row + p] = taps.offset[row + last];
      taps.weight[row + p] = taps.weight[row + last];
    }
  }
  return last;
}

// Locations and weights of one query as float32 in `to`: widened, and offsets added to their
// reference point.
template <typename T, typename C>
void expand(const MSDeformPlan& plan, const MSDeformTensors<T, C>& tensors, std::int64_t query,
            float* locations, float* weights) {
  const std::int64_t heads = plan.sizes().heads, points = plan.points();
  const C* from = tensors.locations + query * heads * points * 2;
  const C* weight = tensors.weights + query * heads * points;
  for (std::int64_t i = 0; i < heads * points; ++i) weights[i] = to_float(weight[i]);
  if (tensors.reference == nullptr) {
    for (std::int64_t i = 0; i < heads * points * 2; ++i) locations[i] = to_float(from[i]);
    return;
  }
  const auto& [levels, coordinates] = tensors.reference_kind;
  const C* references = tensors.reference + query * levels * coordinates;
  for (std::int64_t p = 0; p < points; ++p) {
    const std::int32_t l = plan.tables().level[static_cast<std::size_t>(p)];
    const MSDeformLevel& level = plan.levels()[static_cast<std::size_t>(l)];
    const C* reference = references + (levels == 1 ? 0 : l) * coordinates;
    const float x = to_float(reference[0]), y = to_float(reference[1]);
    float scale_x = 1.0F / static_cast<float>(level.width);
    float scale_y = 1.0F / static_cast<float>(level.height);
    if (coordinates == 4) {
      const float scale = 0.5F / static_cast<float>(level.points);
      scale_x = to_float(reference[2]) * scale;
      scale_y = to_float(reference[3]) * scale;
    }
    for (std::int64_t m = 0; m < heads; ++m) {
      const std::int64_t i = 2 * (m * points + p);
      locations[i] = x + to_float(from[i]) * scale_x;
      locations[i + 1] = y + to_float(from[i + 1]) * scale_y;
    }
  }
}

template <int kTaps, typename T, typename C>
void run_queries(const MSDeformPlan& plan, const MSDeformTensors<T, C>& tensors, std::int64_t begin,
                 std::int64_t end) {
  const auto& [batch, queries, heads, channels] = plan.sizes();
  const std::int64_t points = plan.points();
  const auto count = static_cast<std::size_t>(heads * points);
  const std::size_t stride =
      (count + 2 * MSDeformPlan::kPadding - 1) / MSDeformPlan::kPadding * MSDeformPlan::kPadding;
  const MSDeformPlan::Tables& t = plan.tables();
  const CoordinateTables tables{t.width.data(), t.height.data(), t.start.data(), t.row.data(),
                                static_cast<std::int32_t>(heads * channels)};
  // Taps of a query, then its locations and weights as float32, then which points sample something.
  static thread_local Scratch scratch;
  const std::size_t of_taps = stride * kTaps;
  auto* memory = scratch.get<float>(2 * of_taps + 3 * stride + 2 * ((count + 63) / 64));
  const Taps of_query{reinterpret_cast<std::int32_t*>(memory), memory + of_taps, stride};
  float* locations = memory + 2 * of_taps;
  float* weights = locations + 2 * stride;
  auto* alive = reinterpret_cast<std::uint64_t*>(weights + stride);
  std::int64_t first_taken = 0;
  const Sum<T> first = choose<kTaps, T>(channels, first_taken);
  const bool direct = sizeof(C) == 4 && tensors.reference == nullptr;
  for (std::int64_t query = begin; query < end; ++query) {
    const float *at = locations, *scale = weights;
    if constexpr (sizeof(C) == 4) {
      if (direct) {
        at = tensors.locations + 2 * query * heads * points;
        scale = tensors.weights + query * heads * points;
      }
    }
    if (!direct) expand(plan, tensors, query, locations, weights);
    compute_taps(plan.mode(), tables, at, scale, count, of_query, alive);
    for (std::int64_t m = 0; m < heads; ++m) {
      Taps taps = of_query;
      const std::size_t kept = close_gaps<kTaps>(alive, static_cast<std::size_t>(m * points),
                                                 static_cast<std::size_t>(points), taps);
      taps.offset += m * points;
      taps.weight += m * points;
      const T* value = tensors.value + (query / queries * plan.keys() * heads + m) * channels;
      sum_head<kTaps, T>(value, taps, kept, channels, tensors.out + (query * heads + m) * channels,
                         first, first_taken);
    }
  }
}

// Fewer are not worth handing to another thread: about 7 us of work.
constexpr std::int64_t kLeastQueries = 4;

template <typename T, typename C>
void run(const MSDeformPlan& plan, const MSDeformTensors<T, C>& tensors, const Parallel& parallel) {
  const std::int64_t queries = plan.sizes().batch * plan.sizes().queries;
  for_ranges(parallel, queries, kLeastQueries, [&](std::int64_t begin, std::int64_t end) {
    if (plan.mode() == MSDeformMode::kBilinear)
      run_queries<4>(plan, tensors, begin, end);
    else
      run_queries<1>(plan, tensors, begin, end);
  });
}

}  // namespace

void run_float(const MSDeformPlan& plan, const MSDeformTensors<float, float>& tensors,
               const Parallel& parallel) {
  run(plan, tensors, parallel);
}
void run_half(const MSDeformPlan& plan, const MSDeformTensors<Half, float>& tensors,
              const Parallel& parallel) {
  run(plan, tensors, parallel);
}
void run_half_half(const MSDeformPlan& plan, const MSDeformTensors<Half, Half>& tensors,
                   const Parallel& parallel) {
  run(plan, tensors, parallel);
}
void run_bhalf(const MSDeformPlan& plan, const MSDeformTensors<BHalf, float>& tensors,
               const Parallel& parallel) {
  run(plan, tensors, parallel);
}
void run_bhalf_bhalf(const MSDeformPlan& plan, const MSDeformTensors<BHalf, BHalf>& tensors,
                     const Parallel& parallel) {
  run(plan, tensors, parallel);
}

}  // namespace tenonnx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenonnx {

HWY_EXPORT(run_float);
HWY_EXPORT(run_half);
HWY_EXPORT(run_half_half);
HWY_EXPORT(run_bhalf);
HWY_EXPORT(run_bhalf_bhalf);

template <>
void ms_deform_attn(const MSDeformPlan& plan, const MSDeformTensors<float, float>& tensors,
                    const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(run_float)(plan, tensors, parallel);
}
template <>
void ms_deform_attn(const MSDeformPlan& plan, const MSDeformTensors<Half, float>& tensors,
                    const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(run_half)(plan, tensors, parallel);
}
template <>
void ms_deform_attn(const MSDeformPlan& plan, const MSDeformTensors<Half, Half>& tensors,
                    const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(run_half_half)(plan, tensors, parallel);
}
template <>
void ms_deform_attn(const MSDeformPlan& plan, const MSDeformTensors<BHalf, float>& tensors,
                    const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(run_bhalf)(plan, tensors, parallel);
}
template <>
void ms_deform_attn(const MSDeformPlan& plan, const MSDeformTensors<BHalf, BHalf>& tensors,
                    const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(run_bhalf_bhalf)(plan, tensors, parallel);
}

}  // namespace tenonnx
#endif  // HWY_ONCE
