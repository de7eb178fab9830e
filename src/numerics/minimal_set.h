// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The smallest set for which something holds, found by trying. Neither a beginning nor an end of
// the graph is assumed. Source: Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing
// Input", 2002 (ddmin).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

// Whether it holds for this set; nullopt where no more may be tried.
using SetTest = std::function<Result<std::optional<bool>>(const std::vector<int>&)>;

struct MinimalSet {
  std::vector<int> set;  // it holds for this one
  // No element can be left out alone. False where trials ran out before that was known.
  bool minimal = false;
};

// `start` is a set for which it holds; its order is that in which elements are likely to matter,
// the likeliest first, so that the halves that are tried first are the likely ones. A set of one
// element is minimal without a trial: that it fails for the empty set is known to whoever asks.
Result<MinimalSet> minimize_set(std::vector<int> start, const SetTest& holds);

}  // namespace tenonnx
