// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Three ways, one arithmetic: planes (few points), blocks of channels (many points), channels last.
// Coordinates become taps once for all channels; a thread keeps the taps of its last tile, so that
// pieces of one tile which fall to it share them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/grid_sample/grid_sample.cc"
#include "kernels/grid_sample/grid_sample.h"

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "kernels/blocks-inl.h"
#include "kernels/grid_sample/last-inl.h"
#include "kernels/grid_sample/planes-inl.h"
#include "kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace tenonnx::HWY_NAMESPACE {
namespace {
using namespace grid_sample_taps;

// What a thread keeps: of which call, and of which part of it.
struct Kept {
  Scratch plans, values;
  std::uint64_t call = 0;
  std::int64_t planned = -1;
};

std::int64_t pieces_of(std::int64_t total, std::int64_t piece) {
  return (total + piece - 1) / piece;
}

template <GridSampleMode kMode, int kDimensions, typename T>
class Sampler {
 public:
  Sampler(const GridSampleOptions& options, const GridSampleSizes& sizes,
          const GridSampleTensors<T, float>& tensors, std::uint64_t call)
      : options_(options),
        batch_(sizes.batch),
        channels_(sizes.channels),
        width_(sizes.in[2]),
        pixels_(sizes.in[0] * sizes.in[1] * sizes.in[2]),
        points_(sizes.out[0] * sizes.out[1] * sizes.out[2]),
        axes_{{sizes.in[2], options}, {sizes.in[1], options}, {sizes.in[0], options}},
        tensors_(tensors),
        call_(call) {}

  void run(const Parallel& parallel) const {
    if (options_.channels_last) return by_points(parallel);
    if (blocks_are_faster()) return by_blocks(parallel);
#if HWY_TARGET != HWY_SCALAR
    if constexpr (kMode == GridSampleMode::kLinear)
      if (width_ >= 2) return by_planes<grid_sample_planes::Pairs<kDimensions>>(parallel);
#endif
    by_planes<grid_sample_planes::Gathers<kMode, kDimensions>>(parallel);
  }

 private:
  using Taps = TapPlan<kMode, kDimensions>;
  // Most bytes of the plans of a tile: half of a second cache.
  static constexpr std::int64_t kTileBytes = std::int64_t{1} << 19;
  // Of packed blocks, kept by each thread.
  static constexpr std::int64_t kMostPackedBytes = std::int64_t{1} << 23;

  bool blocks_are_faster() const {
    if (kLanes == 1 || channels_ < kLanes / 2) return false;
    return pixels_ * kLanes * 4 <= kMostPackedBytes && points_ * Taps::kTaps >= pixels_;
  }

  Kept& kept() const {
    static thread_local Kept kept;
    if (kept.call != call_) {
      kept.call = call_;
      kept.planned = -1;
    }
    return kept;
  }

  template <class Plan>
  static std::int64_t tile_of(std::int64_t points) {
    const std::int64_t most = std::max(kTileBytes / (4 * Plan::kNumbers), std::int64_t{1});
    const std::int64_t vectors = pieces_of(points, kLanes);
    return kLanes * pieces_of(vectors, pieces_of(vectors, most));
  }

  template <class Plan>
  const std::int32_t* plans(Kept& kept, std::int64_t n, std::int64_t begin, std::int64_t count,
                            std::int64_t dead, std::int64_t first = kLanes) const {
    const std::int64_t key = n * points_ + begin;
    const std::int64_t numbers = (1 + pieces_of(count, kLanes)) * Plan::kNumbers;
    auto* made = kept.plans.template get<std::int32_t>(static_cast<std::size_t>(numbers));
    if (kept.planned != key)
      make_plans<Plan, kDimensions>(axes_, tensors_.grid + key * kDimensions, first, count,
                                    static_cast<std::int32_t>(dead), made);
    kept.planned = key;
    return made;
  }

  // body(image, part, first point, count) for each of `parts` of each tile of each image; the parts
  // of a tile after each other. work: of a point of a part, in about ns.
  template <typename Body>
  void for_tiles(const Parallel& parallel, std::int64_t tile, std::int64_t parts, std::int64_t work,
                 Body&& body) const {
    const std::int64_t tiles = pieces_of(points_, tile);
    constexpr std::int64_t kLeastWork = 10000;
    const std::int64_t least = pieces_of(kLeastWork, std::max<std::int64_t>(work * tile, 1));
    for_ranges(parallel, batch_ * tiles * parts, least, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        const std::int64_t begin = i / parts % tiles * tile;
        body(i / parts / tiles, i % parts, begin, std::min(tile, points_ - begin));
      }
    });
  }

  template <class Sample>
  void by_planes(const Parallel& parallel) const {
    using Plan = typename Sample::Plan;
    const std::int64_t tile = tile_of<Plan>(points_);
    constexpr std::int64_t kPieces = 16;
    const std::int64_t groups =
        std::min(pieces_of(kPieces, batch_ * pieces_of(points_, tile)), channels_);
    const std::int64_t of_group = pieces_of(channels_, groups);
    for_tiles(parallel, tile, pieces_of(channels_, of_group), of_group * Taps::kTaps / 4 + 1,
              [&](std::int64_t n, std::int64_t group, std::int64_t begin, std::int64_t count) {
                Kept& mine = kept();
                const auto* plan = plans<Plan>(mine, n, begin, count, 0);
                const std::int64_t c = group * of_group, end = std::min(c + of_group, channels_);
                sample_group<Sample>(mine, n * channels_ + c, end - c, plan, begin, count);
              });
  }

  template <class Sample>
  void sample_group(Kept& kept, std::int64_t first, std::int64_t count_planes,
                    const std::int32_t* plan, std::int64_t begin, std::int64_t count) const {
    T* out = tensors_.out + first * points_ + begin;
    const T* value = tensors_.value + first * pixels_;
    if constexpr (std::is_same_v<T, float>) {
      grid_sample_planes::sample_planes<Sample>(value, pixels_, count_planes, plan, count, out,
                                                points_);
    } else {
      auto* widened = kept.values.template get<float>(static_cast<std::size_t>(pixels_));
      for (std::int64_t c = 0; c < count_planes; ++c) {
        widen(value + c * pixels_, widened);
        grid_sample_planes::sample_planes<Sample>(widened, pixels_, 1, plan, count,
                                                  out + c * points_, points_);
      }
    }
  }

  void widen(const T* HWY_RESTRICT from, float* HWY_RESTRICT to) const {
    const F d;
    std::int64_t p = 0;
    for (; p + kLanes <= pixels_; p += kLanes) hn::StoreU(load(d, from + p), d, to + p);
    for (; p < pixels_; ++p) to[p] = to_float(from[p]);
  }

  // All channels of a block at point i of a plan.
  static HWY_INLINE VF sample_block(const float* HWY_RESTRICT block,
                                    const std::int32_t* HWY_RESTRICT plan, std::int64_t i) {
    const F d;
    const auto* weights = reinterpret_cast<const float*>(plan + Taps::kTaps * kLanes);
    auto sum = hn::Zero(d);
    HWY_UNROLL(8)
    for (int tap = 0; tap < Taps::kTaps; ++tap) {
      const float* pixel = block + std::int64_t{plan[tap * kLanes + i]} * kLanes;
      sum = hn::MulAdd(hn::Load(d, pixel), hn::Set(d, weights[tap * kLanes + i]), sum);
    }
    return sum;
  }

  // Blocks of kLanes channels. Where the points of an image are one tile, a thread packs a block
  // and samples it while it is in a cache. Where they are more, blocks are packed first, and what
  // follows takes all of them tile by tile, so that the plan of a tile is made once and not for
  // each block: of 80,000 points nearest in 3-D that was half of the time.
  void by_blocks(const Parallel& parallel) const {
    const std::int64_t tile = tile_of<Taps>(points_), blocks = pieces_of(channels_, kLanes);
    if (tile >= points_) {
      for_ranges(parallel, batch_ * blocks, 1, [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t i = first; i < end; ++i) {
          Kept& mine = kept();
          float* block = mine.values.template get<float>(block_size());
          pack(i / blocks, i % blocks, block);
          sample_tile(mine, i / blocks, i % blocks, 0, points_, block);
        }
        hwy::FlushStream();
      });
      return;
    }
    const auto size = static_cast<std::int64_t>(block_size());
    const std::int64_t most = std::max(kMostPackedBytes / (size * 4), std::int64_t{1});
    // A part of an image, or a whole one, or several that stay in a second cache.
    constexpr std::int64_t kSecondCache = std::int64_t{1} << 20;
    const std::int64_t of_image = std::min(blocks, most);
    const std::int64_t images =
        std::clamp(kSecondCache / (size * 4 * blocks), std::int64_t{1}, batch_);
    float* packed =
        kept().values.template get<float>(static_cast<std::size_t>(images * of_image * size));
    for (std::int64_t n = 0; n < batch_; n += images)
      for (std::int64_t b = 0; b < blocks; b += of_image)
        sample_packed(parallel, tile, n, std::min(images, batch_ - n), b,
                      std::min(of_image, blocks - b), packed);
  }

  void sample_packed(const Parallel& parallel, std::int64_t tile, std::int64_t image,
                     std::int64_t images, std::int64_t block, std::int64_t blocks,
                     float* packed) const {
    const auto size = static_cast<std::int64_t>(block_size());
    for_ranges(parallel, images * blocks, 1, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i)
        pack(image + i / blocks, block + i % blocks, packed + i * size);
    });
    const std::int64_t tiles = pieces_of(points_, tile);
    for_ranges(parallel, images * tiles * blocks, 1, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        const std::int64_t n = i / blocks / tiles, begin = i / blocks % tiles * tile;
        sample_tile(kept(), image + n, block + i % blocks, begin, std::min(tile, points_ - begin),
                    packed + (n * blocks + i % blocks) * size);
      }
      hwy::FlushStream();
    });
  }

  std::size_t block_size() const { return static_cast<std::size_t>((pixels_ + 1) * kLanes); }

  std::int64_t channels_of(std::int64_t block) const {
    return std::min(channels_ - block * kLanes, kLanes);
  }

  void pack(std::int64_t n, std::int64_t block, float* to) const {
    blocks::pack_block(tensors_.value + (n * channels_ + block * kLanes) * pixels_, pixels_,
                       channels_of(block), to);
  }

  void sample_tile(Kept& mine, std::int64_t n, std::int64_t block, std::int64_t begin,
                   std::int64_t count, const float* packed) const {
    T* out = tensors_.out + (n * channels_ + block * kLanes) * points_;
    const std::int64_t head = blocks::streamed_head(out, points_, batch_ * channels_ * points_);
    const std::int64_t to = head >= 0 ? head : kLanes;
    const auto* plan = plans<Taps>(mine, n, begin, count, pixels_, to);
    const auto sample = [&](std::int64_t group, std::int64_t i) HWY_ATTR {
      return sample_block(packed, plan + group * Taps::kNumbers, i);
    };
    if (head >= 0)
      blocks::write_block<true>(channels_of(block), to, count, out + begin, points_, sample);
    else
      blocks::write_block<false>(channels_of(block), to, count, out + begin, points_, sample);
  }

  void by_points(const Parallel& parallel) const {
    // Tiles of 1,024 points leave each thread something to do.
    const std::int64_t tile = tile_of<Taps>(std::min<std::int64_t>(points_, 1024));
    for_tiles(parallel, tile, 1, channels_ * Taps::kTaps / 16 + 1,
              [&](std::int64_t n, std::int64_t, std::int64_t begin, std::int64_t count) {
                const auto* plan = plans<Taps>(kept(), n, begin, count, 0);
                grid_sample_last::sample_last<Taps>(
                    tensors_.value + n * pixels_ * channels_, channels_, plan, count,
                    tensors_.out + (n * points_ + begin) * channels_);
              });
  }

  const GridSampleOptions& options_;
  const std::int64_t batch_, channels_, width_, pixels_, points_;
  const Axis axes_[3];
  const GridSampleTensors<T, float>& tensors_;
  const std::uint64_t call_;
};

template <typename T>
void run(const GridSampleOptions& options, const GridSampleSizes& sizes,
         const GridSampleTensors<T, float>& tensors, std::uint64_t call, const Parallel& parallel) {
  const auto with = [&]<GridSampleMode kMode, int kDimensions>() {
    Sampler<kMode, kDimensions, T>(options, sizes, tensors, call).run(parallel);
  };
  const bool deep = sizes.dimensions == 3;
  switch (options.mode) {
    case GridSampleMode::kNearest:
      return deep ? with.template operator()<GridSampleMode::kNearest, 3>()
                  : with.template operator()<GridSampleMode::kNearest, 2>();
    case GridSampleMode::kLinear:
      return deep ? with.template operator()<GridSampleMode::kLinear, 3>()
                  : with.template operator()<GridSampleMode::kLinear, 2>();
    case GridSampleMode::kCubic:
      return with.template operator()<GridSampleMode::kCubic, 2>();
  }
}

}  // namespace

void grid_sample_float(const GridSampleOptions& options, const GridSampleSizes& sizes,
                       const GridSampleTensors<float, float>& tensors, std::uint64_t call,
                       const Parallel& parallel) {
  run(options, sizes, tensors, call, parallel);
}
void grid_sample_half(const GridSampleOptions& options, const GridSampleSizes& sizes,
                      const GridSampleTensors<Half, float>& tensors, std::uint64_t call,
                      const Parallel& parallel) {
  run(options, sizes, tensors, call, parallel);
}
void grid_sample_bhalf(const GridSampleOptions& options, const GridSampleSizes& sizes,
                       const GridSampleTensors<BHalf, float>& tensors, std::uint64_t call,
                       const Parallel& parallel) {
  run(options, sizes, tensors, call, parallel);
}

}  // namespace tenonnx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenonnx {
namespace {

HWY_EXPORT(grid_sample_float);
HWY_EXPORT(grid_sample_half);
HWY_EXPORT(grid_sample_bhalf);

// Tells apart what threads have kept; 0 is none.
std::uint64_t next_call() {
  static std::atomic<std::uint64_t> calls{0};
  return ++calls;
}

}  // namespace

template <typename T, typename G>
void grid_sample(const GridSampleOptions& options, const GridSampleSizes& sizes,
                 const GridSampleTensors<T, G>& tensors, const Parallel& parallel) {
  const std::int64_t points = sizes.batch * sizes.out[0] * sizes.out[1] * sizes.out[2];
  if (points == 0 || sizes.channels == 0) return;
  GridSampleTensors<T, float> call{tensors.value, nullptr, tensors.out};
  if constexpr (std::is_same_v<G, float>) {
    call.grid = tensors.grid;
  } else {
    static thread_local Scratch scratch;
    const std::int64_t numbers = points * sizes.dimensions;
    auto* widened = scratch.get<float>(static_cast<std::size_t>(numbers));
    std::transform(tensors.grid, tensors.grid + numbers, widened, [](G g) { return to_float(g); });
    call.grid = widened;
  }
  if constexpr (std::is_same_v<T, float>)
    HWY_DYNAMIC_DISPATCH(grid_sample_float)(options, sizes, call, next_call(), parallel);
  else if constexpr (std::is_same_v<T, Half>)
    HWY_DYNAMIC_DISPATCH(grid_sample_half)(options, sizes, call, next_call(), parallel);
  else
    HWY_DYNAMIC_DISPATCH(grid_sample_bhalf)(options, sizes, call, next_call(), parallel);
}

#define TENONNX_INSTANCE(T, G)                                                \
  template void grid_sample(const GridSampleOptions&, const GridSampleSizes&, \
                            const GridSampleTensors<T, G>&, const Parallel&);
TENONNX_INSTANCE(float, float)
TENONNX_INSTANCE(Half, float)
TENONNX_INSTANCE(Half, Half)
TENONNX_INSTANCE(BHalf, float)
TENONNX_INSTANCE(BHalf, BHalf)
#undef TENONNX_INSTANCE

}  // namespace tenonnx
#endif  // HWY_ONCE
