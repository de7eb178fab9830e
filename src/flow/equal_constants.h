// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Constants of two graphs that hold the same under other names.
#pragma once

#include <map>
#include <string>

#include "model/model.h"

namespace tenonnx {

// Adds to `renamed` (before -> after) the constants of the graph before that the graph after holds
// under another name: passes fold, share and name them anew, and none of that is a change.
void add_equal_constants(const Model& before, const Model& after,
                         std::map<std::string, std::string>& renamed);

}  // namespace tenonnx
