// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which provider ran which node: read from ONNX Runtime's profile, compared with its assignment
// record.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ort/executor.h"
#include "tenonnx/base.h"

namespace tenonnx {

// One node of the assignment record: what the partitioner decided when the session was created,
// before the fusions of the higher optimisation levels.
struct AssignedNode {
  std::string provider;
  std::string name;  // empty for a node without a name
  std::string op_type;
  int partition = -1;  // of the provider's, in the order of the record; -1 where none is recorded
};

// `profile` is the text of a profile file: a JSON array with one event a line. It is read line by
// line, because ONNX Runtime does not escape every node name; a line that does not parse is counted
// in Placement::disagreement. Nodes are listed in the order in which they first ran; durations
// are summed over the last run (a loop's body runs several times in it).
//
// Disagreement, besides unreadable lines: a node that ran on another provider than the record says,
// a provider that the record gives nodes and that ran none, a provider that ran nodes and is not in
// the record, no run at all. A node of the record that did not run is none: fusions replace nodes,
// and branches are not taken.
Placement placement_from_profile(std::string_view profile,
                                 const std::vector<AssignedNode>& assigned);

}  // namespace tenonnx
