// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// From what a decoder reads back to the features that it was made of.
#pragma once

#include "cut/data_flow.h"

namespace tenonnx {

// Walks back from `tensors`, each through
//   layout      Reshape, Transpose, Squeeze, Unsqueeze, Flatten, Identity, Cast, Quantize- and
//               DequantizeLinear: up to the tensor whose values these only arrange
//   levels      one Concat, which puts the levels one behind the other: each on its own from there
//   projection  one Conv or MatMul with constant weights and the normalisation behind it, where
//               it is the decoder's and not the last layer of the encoder: its input is what an
//               activation or a residual sum made, or is read elsewhere as well, and no other
//               level goes without a projection
// `before` is the set that `tensors` are the frontier of: a tensor that something else in it reads
// is a feature, and no walk goes past it. What is cut by the result is what `tensors` cut.
TensorIds features_of(const DataFlow& flow, const TensorIds& tensors, const TensorSet& before);

}  // namespace tenonnx
