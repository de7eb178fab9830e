// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The limit of an algebraic pass. Two computations that are equal in real arithmetic differ by
// their roundings. How much roundings do to this computation on these data is measured on the old
// one alone:
//
//   - its inputs and constants disturbed by one unit in the last place, at random (proof_inputs.h)
//   - the same graph at the runtime's full optimisation, which fuses and reorders
//   - half a unit in the last place of the largest output: storing it
//
// The floor is the largest of the first two plus the third.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "metrics/limit.h"
#include "metrics/noise_floor.h"
#include "tenonnx/base.h"

namespace tenonnx {

// A disturbance by one unit at random stands for one rounding of each value. Another form of the
// computation rounds at other places and more often, and sums are the hard case: disturbances of n
// terms average out, the n roundings of a running sum add up to about sqrt(n) / 3 units. The mean
// square of a normalisation over 1024 channels differs by 10 units then, its root by 5 (measured
// on the exports' RMS normalisations over 256 channels: 3.3 times the floor). Eight covers both.
inline constexpr double kProofFactor = 8;

// Of one output: its value and what it was under each disturbance.
struct OutputFloor {
  NoiseFloor floor;
  std::int64_t differing = 0;  // of integers: elements that a disturbance changes, at most
};
// InvalidArgument where shapes or dtypes differ. Of no disturbance: the third part alone, which the
// others can only raise.
Result<OutputFloor> output_floor(const Tensor& value, std::span<const Tensor> disturbed);

// The checks of one output of an algebraic pass. Of integers and bools: differing elements.
Result<std::vector<Check>> algebraic_checks(std::string_view tensor, const Tensor& before,
                                            const Tensor& after, const OutputFloor& floor);
// Bit for bit.
Result<std::vector<Check>> bitwise_checks(std::string_view tensor, const Tensor& before,
                                          const Tensor& after);
// Max abs error within `bound`.
Result<std::vector<Check>> bounded_checks(std::string_view tensor, const Tensor& before,
                                          const Tensor& after, double bound,
                                          std::string_view origin);

// value / limit of a check, for "which is worst"; infinite where a limit of 0 is exceeded.
double severity(const Check& check);

}  // namespace tenonnx
