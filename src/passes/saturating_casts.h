// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Casts of float32 to int64 before which the float may be clipped to +-2^30 without a trace: the
// pixel numbers of a bilinear sample that is written out with gathers.
//
//   i = Cast<int64>(Floor(x))   j = i + 1   Clip(i, 0, 79)   Clip(j, 0, 79)   Less(j, 80)
//
// What comes of the result is only copied, moved by small constants, and then clipped to or
// compared with constants that are small against 2^30. A float beyond 2^30 lies on the same side
// of all of them after the clip. (Beyond 2^63 the Cast itself is undefined.) Where the float is
// whole, as Floor leaves it, the number may also be cast back: that is the float plus 0, which
// makes 0 of -0 as the way through an integer does.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "model/graph.h"
#include "model/model.h"
#include "passes/inference.h"

namespace tenonnx {

inline constexpr std::int64_t kSaturation = std::int64_t{1} << 30;

struct SaturatingCast {
  int node = -1;                  // index in the main graph
  std::vector<int> returns;       // Casts of its output back to float32: x + 0 does the same
  std::set<std::string> tensors;  // its output and all int64 tensors up to where its influence ends
};

std::vector<SaturatingCast> saturating_casts(const Model& model, const GraphIndex& index,
                                             const Inference& inference);

}  // namespace tenonnx
