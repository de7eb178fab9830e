// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>

#include "kernels/grid_sample/grid_sample.h"

namespace tenonnx {
namespace {

double coordinate(double g) { return g; }
template <typename G>
double coordinate(G g) {
  return to_float(g);
}

struct Axis {
  int count = 0;
  std::int64_t index[4];
  double weight[4];
  void add(double at, double w, double size) {
    if (w == 0 || !(at >= 0 && at < size)) return;
    index[count] = static_cast<std::int64_t>(at);
    weight[count++] = w;
  }
};

double reflect(double x, double size, bool align) {
  if (!std::isfinite(x)) return 0;
  const double least = align ? 0 : -0.5, span = align ? size - 1 : size;
  if (span == 0) return 0;
  const double folded = std::fmod(std::abs(x - least), 2 * span);
  return least + (folded > span ? 2 * span - folded : folded);
}

double pad(double x, double size, const GridSampleOptions& options) {
  if (options.padding == GridSamplePadding::kZeros) return x;
  if (options.padding == GridSamplePadding::kReflection)
    x = reflect(x, size, options.align_corners);
  return std::isnan(x) ? 0 : std::clamp(x, 0.0, size - 1);
}

Axis find_taps(double g, std::int64_t pixels, const GridSampleOptions& options) {
  const auto size = static_cast<double>(pixels);
  double x = options.align_corners ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
  const bool zeros = options.padding == GridSamplePadding::kZeros;
  Axis axis;
  if (zeros && !std::isfinite(x)) return axis;
  if (options.mode == GridSampleMode::kNearest) {
    axis.add(std::nearbyint(pad(x, size, options)), 1, size);
    return axis;
  }
  if (options.mode == GridSampleMode::kLinear) {
    x = pad(x, size, options);
    const double x0 = std::floor(x), t = x - x0;
    axis.add(x0, 1 - t, size);
    axis.add(x0 + 1, t, size);
    return axis;
  }
  // Neighbours are padded, not the coordinate; one that is not finite has none.
  if (!std::isfinite(x)) x = pad(x, size, options);
  const double x0 = std::floor(x);
  constexpr double kA = -0.75;
  for (int k = -1; k <= 2; ++k) {
    const double s = std::abs(x - x0 - k);
    const double w =
        s <= 1 ? ((kA + 2) * s - (kA + 3)) * s * s + 1 : kA * (((s - 5) * s + 8) * s - 4);
    axis.add(pad(x0 + k, size, options), w, size);
  }
  return axis;
}

std::string shape(std::int64_t dimensions, const std::array<std::int64_t, 3>& size) {
  std::string out;
  for (std::int64_t i = 3 - dimensions; i < 3; ++i) {
    if (!out.empty()) out.append(" x ");
    out.append(std::to_string(size[static_cast<std::size_t>(i)]));
  }
  return out;
}

}  // namespace

std::string check(const GridSampleOptions& options, const GridSampleSizes& sizes) {
  if (sizes.dimensions == 3 && options.mode == GridSampleMode::kCubic)
    return "mode cubic has no form for 3 dimensions; nearest and linear have";
  constexpr std::int64_t kMostSize = std::int64_t{1} << 24;
  constexpr std::int64_t kMostPixels = (std::int64_t{1} << 31) - 2;
  std::int64_t pixels = 1;
  const auto image = [&](const char* what) {
    std::string out = "an image of ";
    out.append(shape(sizes.dimensions, sizes.in)).append(what);
    return out;
  };
  for (const std::int64_t size : sizes.in) {
    if (size < 1) return image(" has no pixel to sample");
    if (size > kMostSize)
      return image(" is longer than 2^24 pixels, which float32 does not count exactly");
    if (size > kMostPixels / pixels) return image(" has more than 2^31 - 2 pixels");
    pixels *= size;
  }
  return "";
}

template <typename T, typename G>
void grid_sample_reference(const GridSampleOptions& options, const GridSampleSizes& sizes,
                           const GridSampleTensors<T, G>& tensors) {
  const auto& in = sizes.in;
  const std::int64_t pixels = in[0] * in[1] * in[2];
  const std::int64_t points = sizes.out[0] * sizes.out[1] * sizes.out[2];
  for (std::int64_t n = 0; n < sizes.batch; ++n) {
    for (std::int64_t k = 0; k < points; ++k) {
      const G* g = tensors.grid + (n * points + k) * sizes.dimensions;
      const Axis ax = find_taps(coordinate(g[0]), in[2], options);
      const Axis ay = find_taps(coordinate(g[1]), in[1], options);
      Axis az;
      if (sizes.dimensions == 3)
        az = find_taps(coordinate(g[2]), in[0], options);
      else
        az.add(0, 1, 1);
      for (std::int64_t c = 0; c < sizes.channels; ++c) {
        double sum = 0;
        for (int z = 0; z < az.count; ++z)
          for (int y = 0; y < ay.count; ++y)
            for (int x = 0; x < ax.count; ++x) {
              const std::int64_t p = (az.index[z] * in[1] + ay.index[y]) * in[2] + ax.index[x];
              const std::int64_t at = options.channels_last ? (n * pixels + p) * sizes.channels + c
                                                            : (n * sizes.channels + c) * pixels + p;
              sum += az.weight[z] * ay.weight[y] * ax.weight[x] * to_float(tensors.value[at]);
            }
        const std::int64_t to = options.channels_last ? (n * points + k) * sizes.channels + c
                                                      : (n * sizes.channels + c) * points + k;
        from_float(static_cast<float>(sum), tensors.out[to]);
      }
    }
  }
}

#define TENONNX_INSTANCE(T, G)                                                          \
  template void grid_sample_reference(const GridSampleOptions&, const GridSampleSizes&, \
                                      const GridSampleTensors<T, G>&);
TENONNX_INSTANCE(float, float)
TENONNX_INSTANCE(float, double)
TENONNX_INSTANCE(Half, float)
TENONNX_INSTANCE(Half, double)
TENONNX_INSTANCE(Half, Half)
TENONNX_INSTANCE(BHalf, float)
TENONNX_INSTANCE(BHalf, double)
TENONNX_INSTANCE(BHalf, BHalf)
#undef TENONNX_INSTANCE

}  // namespace tenonnx
