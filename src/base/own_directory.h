// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Where the program or library lies that this code is part of: what belongs to it is beside it.
#pragma once

#include <filesystem>

namespace tenonnx {

// The directory of the shared library that holds this code, else of the executable; links are
// resolved. Empty where neither can be told.
std::filesystem::path own_directory();

}  // namespace tenonnx
