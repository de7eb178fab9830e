// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What fuse_layer_normalization and fuse_rms_normalization share.
#pragma once

#include <string_view>

#include "passes/runner.h"

namespace tenonnx {

// Every chain that computes `op_type` (with the mean taken off where `centered`) becomes that
// operator; refused where the model's opset is below `opset`, which brought it.
Result<PassOutcome> fuse_normalization(Model& model, std::string_view op_type, int opset,
                                       bool centered);

}  // namespace tenonnx
