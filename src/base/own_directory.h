// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Where the program or library lies that this code is part of: what belongs to it is beside it.
#pragma once

#include <filesystem>
#include <string_view>

#include "tenonnx/base.h"

namespace tenonnx {

// The directory of the shared library that holds this code, else of the executable; links are
// resolved. Empty where neither can be told.
std::filesystem::path own_directory();

// A library of ours that is loaded by its path, not linked: the one that the environment variable
// names, else beside the code, in ../lib or lib of that, else `configured` (the build's; may be
// empty). NotFound lists what was tried; `what` opens the sentence.
Result<std::filesystem::path> find_own_library(std::string_view what, const char* file,
                                               const char* environment,
                                               const std::filesystem::path& configured);

}  // namespace tenonnx
