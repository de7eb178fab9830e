// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Where limits come from. A limit is a noise floor, measured on the same data in the same
// arithmetic, times a factor that is stated. There is no other tolerance in the project, except the
// task gates (metrics/task_gates.h), which are agreed figures and say so.
#pragma once

#include <cstdint>
#include <string>

#include "metrics/limit.h"
#include "tenonnx/base.h"

namespace tenonnx {

// The error that is there although nothing is wrong.
struct NoiseFloor {
  double max_abs = 0;
  double relative_l2 = 0;
  std::string origin;  // "storing 'feature_0' as float16", "two optimisation levels on 8 images"
  // Elements that storage turns into Inf, or that only one of two computations left finite; left
  // out of both figures, since a floor of Inf would pass everything. Their own failure: see
  // finite_check.
  std::int64_t overflowed = 0;
  std::int64_t first_overflowed_index = -1;
};

// max |F32(STORAGE(y)) - y| over y, and the same as relative L2: what a device that computes
// exactly but stores in `storage` (kFloat16 or kBFloat16, to nearest even) cannot avoid.
// y: any floating dtype; its own Inf and NaN are left out. InvalidArgument for other dtypes.
Result<NoiseFloor> storage_noise_floor(const Tensor& y, DType storage, std::string origin);

// The floor between two computations that are both right: the same graph at two optimisation
// levels, two orders of summation. `origin` says which. InvalidArgument as compare_tensors.
Result<NoiseFloor> measured_noise_floor(const Tensor& a, const Tensor& b, std::string origin);

// The larger of both in each figure, for one tensor over several images; keeps a's origin.
NoiseFloor join_worst(const NoiseFloor& a, const NoiseFloor& b);

enum class FloorFigure : std::uint8_t { kMaxAbs, kRelativeL2 };

// The one function that makes a limit of a floor: factor x figure. The origin reads
// "8 x the noise floor 1.2e-07 (max abs) of <floor.origin>". A floor of 0 gives a limit of 0: where
// the arithmetic is exact, so must the result be. A floor of Inf gives NaN, which no check passes.
Limit limit_from_floor(const NoiseFloor& floor, FloorFigure figure, double factor);

}  // namespace tenonnx
