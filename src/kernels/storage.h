// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The element types of kernels. All of them compute in float32; a value of 16 bits is widened when
// it is loaded and rounded (to nearest, ties to even) when it is stored.
#pragma once

#include <cstdint>

#include "base/half.h"

namespace tenonnx {

// Bits, as ONNX stores them.
struct Half {
  std::uint16_t bits;
};
struct BHalf {
  std::uint16_t bits;
};

inline float to_float(float value) { return value; }
inline float to_float(Half value) { return float16_to_float(value.bits); }
inline float to_float(BHalf value) { return bfloat16_to_float(value.bits); }

inline void from_float(float value, float& out) { out = value; }
inline void from_float(float value, Half& out) { out.bits = float_to_float16(value); }
inline void from_float(float value, BHalf& out) { out.bits = float_to_bfloat16(value); }

}  // namespace tenonnx
