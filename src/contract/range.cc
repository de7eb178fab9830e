// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "contract/range.h"

#include <algorithm>
#include <cmath>

namespace tenonnx {

std::array<double, 2> implied_range(const ImageInput& image) {
  const double top = is_division_by_255(image.scale) ? 1.0 : 255.0 * image.scale;
  if (image.normalized_by == NormalizedBy::kModel) return {std::min(0.0, top), std::max(0.0, top)};
  std::array<double, 2> range = {HUGE_VAL, -HUGE_VAL};
  for (std::size_t c = 0; c < 3; ++c) {
    for (const double x : {0.0, top}) {
      const double value = (x - image.mean[c]) / image.std[c];
      range = {std::min(range[0], value), std::max(range[1], value)};
    }
  }
  return range;
}

bool is_division_by_255(double scale) { return std::abs(scale * 255.0 - 1.0) < 1e-6; }

}  // namespace tenonnx
