// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which tensors of a chain of segments a selection reaches: the rows of these come in the order in
// which each side chose, so that element i of one side says nothing about element i of the other.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "package/manifest.h"

namespace tenonnx {

struct SelectedRows {
  std::set<std::string> tensors;  // outputs of segments, boundaries among them
  std::string first;              // label of the first selection: "TopK '/decoder/TopK'"
};

// Reads the segments' files below `package`. Selections: model/selects.h; but a TopK of which only
// the sorted values are used selects nothing, as it is continuous like a maximum.
Result<SelectedRows> selected_rows(const std::filesystem::path& package,
                                   const std::vector<Segment>& segments);

}  // namespace tenonnx
