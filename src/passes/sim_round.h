// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Rounding as a device stores values: the arithmetic of the simulated device, one element at a time
// and for whole arrays. The operator tenonnx.sim::Round of a simulated graph computes this.
//
// before -> after, for storage with p significant bits (float16 11, bfloat16 8, float32 24),
// smallest normal magnitude m and largest finite magnitude M of the type:
//   1. x * (1 + relative_error * n), n drawn from a standard normal by (seed, index)
//   2. nearest multiple of the unit in the last place, ties to even, as if the exponent had no
//   upper
//      limit: 2^(e-p+1) for 2^e <= |x|, and below m the unit at m (subnormals)
//   3. a result below m is flushed to zero, sign kept, unless subnormals are kept
//   4. kInfinity: beyond M is infinity. kSaturate: beyond max is max; infinity is `infinite` (max
//      where that is 0); NaN is `nan` where the device has one. kPattern: beyond M is 65536,
//      infinity's bits read as a number, and NaN is its pattern (pattern_of).
// Where round is false, an operand of an operator with kPattern is made: 65536 is infinity, beyond
// it NaN with the significand as payload.
#pragma once

#include <cstdint>
#include <limits>

#include "device/device.h"

namespace tenonnx {

struct RoundSpec {
  DType storage = DType::kFloat32;
  Overflow overflow;
  bool keep_subnormals = true;
  // false: values within the range pass as they are; only what would overflow after rounding
  // changes. For operands of MatMul and Conv, which are already stored values.
  bool round = true;
  double relative_error = 0;  // standard deviation
  std::uint64_t seed = 0;     // of this tensor
};

// Arrays may be the same; they may not overlap otherwise. `first` is the index of in[0] in the
// tensor, which the error generator counts from.
void round_values(const RoundSpec& spec, const float* in, float* out, std::int64_t count,
                  std::int64_t first = 0);
void round_values(const RoundSpec& spec, const double* in, double* out, std::int64_t count,
                  std::int64_t first = 0);

// What a NaN is read as by operators that take its float16 bits for an ordinary number: the quiet
// bit set, so 98304 to 131008. Of an operand's NaN the sign is kept; the NaN that IEEE makes of
// inf - inf or 0 * inf is -98304.
double pattern_of(float nan);
double pattern_of(double nan);

// A standard normal variate that depends on its two arguments alone.
double normal_at(std::uint64_t seed, std::uint64_t index);
// The seed of one tensor: FNV-1a of its name, mixed with the device's seed.
std::uint64_t tensor_seed(std::uint64_t seed, std::string_view name);

}  // namespace tenonnx
