// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// For errors about a name that does not exist: those that were perhaps meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenonnx {

// "'a', 'b', 'c' and 12 more": at most three of `names`, the most similar first; "" for no names.
// Names that differ only in case and in characters other than letters and digits, as toolchains
// rewrite them, come before all others; then those that contain `name` in this way (where it has at
// least three letters or digits: fewer are everywhere); the rest by edit distance (Levenshtein),
// ties in alphabetical order.
std::string nearest_names(std::string_view name, const std::vector<std::string>& names);

}  // namespace tenonnx
