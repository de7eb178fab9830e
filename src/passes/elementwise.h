// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Operators that compute every element by itself: what the passes that move others past them ask.
#pragma once

#include <string_view>

namespace tenonnx {

// One element of input 0 gives one of the output; further inputs (the bounds of Clip) are scalars.
bool is_unary_elementwise(std::string_view op_type);
// All inputs broadcast to the output: Add, Pow, Less, ... Where is another: see the caller.
bool is_nary_elementwise(std::string_view op_type);
// ReduceSum and the others that take axes and keepdims.
bool is_reduction(std::string_view op_type);

}  // namespace tenonnx
