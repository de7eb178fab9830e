// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Normalisation written out, over the last axes of x:
//
//   y = x / sqrt(mean(x^2) + epsilon) * scale                               RMSNormalization
//   y = d / sqrt(mean(d^2) + epsilon) * scale + bias, d = x - mean(x)       LayerNormalization
//
// The square is Pow by 2 or Mul by itself; the root Sqrt or Pow by 0.5 or -0.5; the quotient Div,
// or Mul by Reciprocal or by 1 / root. d may be computed twice. Scale and bias may be missing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "passes/rewriter.h"

namespace tenonnx {

struct NormalizationPattern {
  std::string x;
  bool centered = false;
  std::int64_t axis = -1;   // the first of the axes, negative
  float epsilon = 0;        // 0 where none is added
  Shape dims;               // of the axes; -1 where one is not known
  std::string scale, bias;  // constants whose elements are those of `dims`; "" where there is none
  int last = -1;            // the node that makes y
  std::vector<int> nodes;   // all of them
};

// Around node `index`, the Sqrt or Pow that takes the root; `centered` asks for LayerNormalization.
// `reason` is set where it is nearly one.
std::optional<NormalizationPattern> match_normalization(const Rewriter& r, int index, bool centered,
                                                        std::string& reason);

// The scale that is not there: ones; nullopt where the size of the axes is not known.
std::optional<Tensor> scale_of_ones(const Shape& dims);

// The constant under the shape `dims`: itself, or a new one of the same elements.
std::string shaped_constant(Rewriter& r, const std::string& name, const Shape& dims);

}  // namespace tenonnx
