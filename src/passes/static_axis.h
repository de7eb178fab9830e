// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What axis_taps() (grid_sample_taps.h) emits, computed: for a grid that is constant.
#pragma once

#include <cstdint>

#include "passes/grid_sample_form.h"

namespace tenonnx {

// linear has two neighbours; nearest one, the other has weight 0. A neighbour that is not sampled
// has weight 0 and any index inside.
struct AxisTapValues {
  std::int64_t index[2] = {0, 0};
  float weight[2] = {0, 0};
};
// `g`: a coordinate of the grid, along an axis of `size` pixels. The mode is linear or nearest.
AxisTapValues axis_tap_values(const GridSampleNode& site, float g, std::int64_t size);

}  // namespace tenonnx
