// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The table of article 003 at several cuts, and the waterfall that follows from it: with the
// reference's tensors put in at a cut, what the device adds behind it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "numerics/locate.h"

namespace tenonnx {

struct CrossSplits {
  std::vector<CrossSplit> cuts;        // by nodes before
  std::vector<std::set<int>> before;   // nodes of the candidate before each
  std::vector<std::set<int>> halves;   // sides that mend the task at the reference
  std::vector<std::string> sentences;  // which side alone is enough
};

// `named`: one more cut (exact tensors of the candidate), empty for none.
Result<CrossSplits> cross_splits(Trials& trials, const Model& candidate,
                                 const std::vector<std::string>& named, std::size_t max_cuts);

// Bars from the input to the outputs; they add up to the error of the whole on the device.
std::vector<WaterfallBar> waterfall(const CrossSplits& splits, const Trial& whole,
                                    const std::vector<Suspect>& suspects,
                                    const GraphIndex& candidate);

}  // namespace tenonnx
