// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The rounding of sampling coordinates, for the noise floor of regions that sample.
#pragma once

#include <cstdint>

#include "model/model.h"
#include "tenonnx/base.h"

namespace tenonnx {

// Moves every coordinate of every grid of known shape that the main graph's GridSample take by one
// or two units in its last place, and by 2^-24, each up, down or not at all, at random: float32
// alone.
//
// A coordinate -1..1 is rounded by up to 2^-25, which sampling magnifies by half the size of the
// image: at 160 pixels by 80. Where it is computed from something far smaller (locations near 0:
// 2 x - 1), a disturbance of that by one unit shows nothing of this rounding. Nor does one of the
// coordinate, where that is near 0 itself: sampling begins with g + 1, which is rounded by 2^-24.
Status disturb_grids(Model& model, std::uint64_t seed);

}  // namespace tenonnx
