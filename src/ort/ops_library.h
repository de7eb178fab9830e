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

}  // namespace tenonnx
