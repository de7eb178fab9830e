// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The figures of a tensor that are not means of errors: signal over noise, steps of the number
// format, shares beyond a limit, saturation. tensor_error.h has the others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "metrics/tensor_error.h"
#include "tenonnx/base.h"

namespace tenonnx {

// Signal over noise in dB: 10 log10(sum reference^2 / sum (candidate - reference)^2), which is
// -20 log10 of the relative L2 error. Inf where the two are equal; none where there is no relative
// L2 error.
std::optional<double> sqnr_db(const TensorError& error);

// Peak signal over noise in dB: 10 log10(peak^2 / mean (candidate - reference)^2) over the elements
// that are finite on both sides. `peak`: the width of the declared range, above 0. Inf where the
// two are equal. InvalidArgument as compare_tensors, for integers, and for a peak that is not above
// 0.
Result<double> psnr_db(const Tensor& reference, const Tensor& candidate, double peak);

// The largest distance in units in the last place: how many values of the dtype lie between the
// two, +0 and -0 being one. Over elements that are finite on both sides; -1 where there is none.
// float16, bfloat16, float32, float64; of `step` where that is a narrower type than the tensor's
// (both sides are rounded to it first: a float32 tensor that holds float16 results). None for
// integers. InvalidArgument as compare_tensors.
Result<std::optional<std::int64_t>> max_ulp(const Tensor& reference, const Tensor& candidate,
                                            DType step);

// Elements whose absolute error is above `limit`, or that are not finite on just one side.
// InvalidArgument as compare_tensors.
Result<std::int64_t> count_beyond(const Tensor& reference, const Tensor& candidate, double limit);

// What a device did to values that its storage cannot hold.
struct Saturation {
  // The reference's magnitude is above `largest`, finite: the element cannot be stored.
  std::int64_t beyond = 0;
  double max_abs = 0;  // the largest such magnitude
  std::int64_t first_index = -1;
  // Of these, those that the candidate holds as a smaller number, by more than rounding makes it,
  // that is no larger than `ceiling`.
  std::int64_t saturated = 0;
};
// `largest`: the storage's largest finite magnitude, 65504 for float16; `ceiling`: the largest that
// the device's overflow gives. `masks`: magnitudes of constants of the model (1e9, 3.4e38), rising;
// elements of the reference that have one of these are left out. InvalidArgument as
// compare_tensors, and for integers.
Result<Saturation> count_saturated(const Tensor& reference, const Tensor& candidate, double largest,
                                   double ceiling, std::span<const double> masks);

// What became of elements that are Inf or NaN in the reference.
struct NonFiniteChange {
  std::int64_t saturated = 0;  // Inf that the candidate holds as a number of its storage's end
  // What no storage explains: NaN for Inf, the other sign, another number for either.
  std::int64_t lost = 0;
  std::int64_t first_lost_index = -1;
};
// `largest`: the storage's largest finite magnitude: a finite number of that size or above, of the
// same sign, is a saturated Inf. Inf where nothing saturates, as in float32. InvalidArgument as
// compare_tensors; all 0 for integers.
Result<NonFiniteChange> changed_non_finite(const Tensor& reference, const Tensor& candidate,
                                           double largest);

}  // namespace tenonnx
