// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <cmath>

#include "kernels/ms_deform_attn/ms_deform_attn.h"

namespace tenonnx {
namespace {

struct Tap {
  std::int64_t x, y;
  double weight;
};

// At most four; those outside are left out, and those of weight zero.
int find_taps(MSDeformMode mode, double location_x, double location_y, const MSDeformLevel& level,
              Tap* taps) {
  const auto width = static_cast<double>(level.width), height = static_cast<double>(level.height);
  if (mode == MSDeformMode::kDiscrete) {
    const auto index = [](double location, double size) {
      const double at = std::trunc(location * size + 0.5);
      return std::isnan(at) ? std::int64_t{0}
                            : static_cast<std::int64_t>(std::clamp(at, 0.0, size - 1));
    };
    taps[0] = {index(location_x, width), index(location_y, height), 1};
    return 1;
  }
  const double x = location_x * width - 0.5, y = location_y * height - 0.5;
  if (mode == MSDeformMode::kNearest) {
    const double at_x = std::nearbyint(x), at_y = std::nearbyint(y);
    if (!(at_x >= 0 && at_x < width && at_y >= 0 && at_y < height)) return 0;
    taps[0] = {static_cast<std::int64_t>(at_x), static_cast<std::int64_t>(at_y), 1};
    return 1;
  }
  if (!(x > -1 && x < width && y > -1 && y < height)) return 0;
  const double x0 = std::floor(x), y0 = std::floor(y), dx = x - x0, dy = y - y0;
  int count = 0;
  for (int corner = 0; corner < 4; ++corner) {
    const bool right = (corner & 1) != 0, below = (corner & 2) != 0;
    const double at_x = x0 + right, at_y = y0 + below;
    const double weight = (right ? dx : 1 - dx) * (below ? dy : 1 - dy);
    if (at_x < 0 || at_x >= width || at_y < 0 || at_y >= height || weight == 0) continue;
    taps[count++] = {static_cast<std::int64_t>(at_x), static_cast<std::int64_t>(at_y), weight};
  }
  return count;
}

}  // namespace

template <typename T, typename C>
void ms_deform_attn_reference(const MSDeformPlan& plan, const MSDeformTensors<T, C>& tensors) {
  const auto& [batch, queries, heads, channels] = plan.sizes();
  const std::int64_t points = plan.points();
  std::vector<double> sum(static_cast<std::size_t>(channels));
  for (std::int64_t bq = 0; bq < batch * queries; ++bq) {
    const T* value = tensors.value + bq / queries * plan.keys() * heads * channels;
    for (std::int64_t m = 0; m < heads; ++m) {
      std::fill(sum.begin(), sum.end(), 0.0);
      std::int64_t start = 0, at = (bq * heads + m) * points;
      for (std::size_t l = 0; l < plan.levels().size(); ++l) {
        const MSDeformLevel& level = plan.levels()[l];
        for (std::int64_t p = 0; p < level.points; ++p, ++at) {
          double x = to_float(tensors.locations[2 * at]),
                 y = to_float(tensors.locations[2 * at + 1]);
          if (tensors.reference != nullptr) {
            const auto& [levels, coordinates] = tensors.reference_kind;
            const C* reference =
                tensors.reference +
                (bq * levels + (levels == 1 ? 0 : static_cast<std::int64_t>(l))) * coordinates;
            if (coordinates == 2) {
              x = to_float(reference[0]) + x / static_cast<double>(level.width);
              y = to_float(reference[1]) + y / static_cast<double>(level.height);
            } else {
              const double scale = 0.5 / static_cast<double>(level.points);
              x = to_float(reference[0]) + x * to_float(reference[2]) * scale;
              y = to_float(reference[1]) + y * to_float(reference[3]) * scale;
            }
          }
          const double weight = to_float(tensors.weights[at]);
          if (weight == 0) continue;
          Tap taps[4];
          const int count = find_taps(plan.mode(), x, y, level, taps);
          for (int k = 0; k < count; ++k) {
            const T* pixel =
                value + ((start + taps[k].y * level.width + taps[k].x) * heads + m) * channels;
            for (std::int64_t c = 0; c < channels; ++c)
              sum[static_cast<std::size_t>(c)] += weight * taps[k].weight * to_float(pixel[c]);
          }
        }
        start += level.height * level.width;
      }
      for (std::int64_t c = 0; c < channels; ++c)
        from_float(static_cast<float>(sum[static_cast<std::size_t>(c)]),
                   tensors.out[(bq * heads + m) * channels + c]);
    }
  }
}

template void ms_deform_attn_reference(const MSDeformPlan&, const MSDeformTensors<float, float>&);
template void ms_deform_attn_reference(const MSDeformPlan&, const MSDeformTensors<Half, float>&);
template void ms_deform_attn_reference(const MSDeformPlan&, const MSDeformTensors<Half, Half>&);
template void ms_deform_attn_reference(const MSDeformPlan&, const MSDeformTensors<BHalf, float>&);
template void ms_deform_attn_reference(const MSDeformPlan&, const MSDeformTensors<BHalf, BHalf>&);

}  // namespace tenonnx
