// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Hypotheses with a bound that is not known: what a piece gives where something in it is cut off.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "numerics/fault_kind.h"

namespace tenonnx {

// The piece's values at a bound; nullopt where it does not run so.
using AtBound = std::function<Result<std::optional<std::vector<double>>>(double bound)>;
struct NearestBound {
  double bound = 0;
  std::vector<double> values;
};
// Of bounds from `most` down to `least`, a tenth apart and then closer around the best, the one
// that gives the least squared distance to `got`.
Result<std::optional<NearestBound>> nearest_bound(double most, double least,
                                                  const std::vector<double>& got,
                                                  const AtBound& at);

// A LayerNormalization over the last axis that is written out, as devices do, with an end to what
// its squares can be.
class SquaresOfNorm {
 public:
  // `one` outlives it.
  explicit SquaresOfNorm(const PieceCase& one);
  double largest() const { return largest_; }  // 0: the piece is something else
  Model cut_off(double bound) const;           // of which the squares end at `bound`

 private:
  const PieceCase& one_;
  int node_ = -1;
  double largest_ = 0;
};

}  // namespace tenonnx
