// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which NaN a product stores, for devices that read NaN's bits as a number (Overflow::kPattern).
// IEEE leaves open which of several operands a NaN repeats, and kernels differ; this is the order
// in which HTP's matrix unit adds:
//
//   for each place of the kernel, in order of rows    (MatMul and Gemm have one)
//     for channels 1, 0, 3, 2, 5, 4, ...
//       a term whose weight is 0 counts as 0, whatever the other operand
//       the first operand that is NaN is the result, the weight before the activation, its sign
//       lost
//   without one: the sum; inf - inf is -98304
//
// An addition takes the second operand's NaN before the first's and keeps the sign. A depthwise
// Conv goes through the rows of its kernel from the last to the first and keeps the sign.
//
// Source: graphs of one product with chosen NaN on onnxruntime-qnn 2.7.0 (QNN 2.51), HTP emulator
// on x86-64; the order is that of all K = 12 channels and 9 places, found one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

struct ProductShape {
  enum class Kind { kMatMul, kConv, kSum } kind = Kind::kMatMul;
  Shape a, b, y;                                       // activation, weight, result
  bool trans_a = false, trans_b = false;               // of Gemm
  std::int64_t group = 1;                              // of Conv, in two dimensions
  std::vector<std::int64_t> strides, pads, dilations;  // [2], [4], [2]
};

// Whether product_value() knows these shapes: matrices with the same leading dimensions or one side
// without, Conv in two dimensions, and sums of any shapes that broadcast.
bool is_known(const ProductShape& shape);

// Element `index` of the result, where it is NaN in IEEE: the stored number. `a` and `b` are
// operands with infinities and NaN (sim_round.h). Not rounded below 65520.
double product_value(const ProductShape& shape, const float* a, const float* b, std::int64_t index);

}  // namespace tenonnx
