// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which pixels a region samples and with which weights, read off its outputs: sampling is linear in
// the image, so images that are 1, x or y at every second pixel of every second row (the four
// neighbours of a point are then told apart) and 0 elsewhere give each neighbour's weight, and its
// place times that weight. The same images before and after a pass show which taps moved, whatever
// nodes compute them and in whatever layout.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "passes/proof_sampling_map.h"
#include "passes/proof_sampling_sites.h"
#include "tenonnx/base.h"

namespace tenonnx {

// A tap is wrong where it is of another pixel, where only one side has it, or where its weight
// differs by more than this: an eighth of what half a pixel's 8-bit weights resolve, and eight
// thousand times float32's rounding.
inline constexpr double kTapTolerance = 1e-3;
// Half types: 2^-8 is one rounding of bfloat16 between 0.5 and 1.
inline constexpr double kHalfTapTolerance = 1.0 / 64;

struct TapCount {
  std::int64_t taps = 0;  // with a weight, on either side
  std::int64_t wrong = 0;
  // Largest distance along an axis between what both sides sample, in pixels: of the first pixel of
  // the point; of the centre of gravity where an output sums several points.
  double index_difference = 0;
  std::int64_t first_wrong = -1;  // element of the outputs, counted through all of them
  std::string problem;            // why it could not be read off: "after: ..."; else empty
};

// Values for the inputs of the region -> its outputs, in their order.
using RunOutputs = std::function<Result<std::vector<Tensor>>(const TensorMap& inputs)>;

// `map`: where the level's image comes from in `input`, which `values` holds. Everything of `input`
// but the level's first channel is 0. `bound`: how far an output may be off by the pass's own word;
// a weight may then differ by what that is of the images' values.
TapCount compare_taps(const SampledLevel& level, const ElementMap& map, const std::string& input,
                      const TensorMap& values, const RunOutputs& before, const RunOutputs& after,
                      double bound = 0);

}  // namespace tenonnx
