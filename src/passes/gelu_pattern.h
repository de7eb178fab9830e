// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// GELU written with Erf or Tanh, whatever the order of its factors:
//
//   y = 0.5 x (1 + erf(x / sqrt(2)))
//   y = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
//
// 0.5 may stand at x, at the sum, inside it (0.5 erf + 0.5) or at the end; the argument may be any
// chain of Mul, Add, Sub, Div, Pow by constants that is that polynomial.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "passes/rewriter.h"

namespace tenonnx {

struct GeluPattern {
  std::string x;
  bool tanh = false;
  int last = -1;           // the node that makes y
  std::vector<int> nodes;  // all of them
};

// Around node `index`, an Erf or a Tanh. `reason` is set where it is nearly one: a GELU of a wrong
// constant, or one whose inside is used elsewhere.
std::optional<GeluPattern> match_gelu(const Rewriter& r, int index, std::string& reason);

// True where node `index` is the last one of a GELU.
bool ends_gelu(const Rewriter& r, int index);

}  // namespace tenonnx
