// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a Softmax promises whatever its inputs are: its results sum to 1 along its axis. A device
// that approximates the exponential breaks that first.
#pragma once

#include "tenonnx/base.h"

namespace tenonnx {

struct SoftmaxSum {
  double max_error = 0;  // the largest |sum - 1| along the axis; Inf where a sum is not finite
  std::int64_t worst_lane = -1;  // its position, the axis left out, in row-major order
  std::int64_t lanes = 0;
};

// Sums in double. `axis` counts from the end where it is negative. InvalidArgument for an axis that
// the tensor does not have, and for integers.
Result<SoftmaxSum> softmax_sum(const Tensor& tensor, int axis);

// The same of `reference` stored in `storage` (kFloat16, kBFloat16; as it is for any other): the
// error that rounding the exact results has already.
Result<SoftmaxSum> softmax_sum_baseline(const Tensor& reference, int axis, DType storage);

}  // namespace tenonnx
