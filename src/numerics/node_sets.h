// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The smallest set of nodes that mends the task when it is kept at the reference, and the smallest
// that breaks it when it alone is on the device.
#pragma once

#include <optional>
#include <vector>

#include "numerics/locate.h"

namespace tenonnx {

struct FoundSets {
  std::optional<NodeSet> keep, breaks;
  std::vector<NodeSet> alternatives;  // by operator, by block, of the nodes of `keep`
  std::vector<std::string> notes;
};

// `failing`: nodes with an own error that stands out, the likeliest first. `halves`: sets of nodes
// that are known to mend it (what lies on one side of a cut), for when the failing ones do not.
Result<FoundSets> find_node_sets(Trials& trials, const std::vector<int>& failing,
                                 const std::vector<std::set<int>>& halves);

}  // namespace tenonnx
