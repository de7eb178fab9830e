// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Where things are kept that can be made again.
#pragma once

#include <filesystem>
#include <string_view>

namespace tenonnx {

// $XDG_CACHE_HOME/tenonnx/<name>, else ~/.cache/tenonnx/<name>; empty where neither is known.
std::filesystem::path cache_directory(std::string_view name);

}  // namespace tenonnx
