// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// libtenonnx_ops.so, whose operators (src/kernels) a model may hold: every session of such a model
// registers it.
#pragma once

#include <filesystem>

#include "model/model.h"
#include "tenonnx/base.h"

namespace tenonnx {

inline constexpr const char* kOpsDomain = "tenonnx";

// Whether the model imports the domain (each node of which must be imported by the model).
bool uses_ops_library(const Model& model);

// TENONNX_OPS, else beside the command or library. NotFound lists what was tried.
Result<std::filesystem::path> find_ops_library();

inline constexpr const char* kOpsLibraryFile = "libtenonnx_ops.so";

// ---- A package whose segments hold such operators carries the library that it was proved with.
// Code out of a package is not loaded: sessions take this program's library, which must be the same
// file by its SHA-256.

// Copies this program's library into `directory`, where it is not there yet.
Status copy_ops_library(const std::filesystem::path& directory);
// Nothing to check where the model does not use the library. DataLoss: the package has none.
// FailedPrecondition: this program's is another one; says both hashes and what to do.
Status check_ops_library(const std::filesystem::path& package, const Model& model);

}  // namespace tenonnx
