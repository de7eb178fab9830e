// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// From a partition's graph to what the device would load.
#pragma once

#include <onnxruntime_cxx_api.h>

#include "context.h"

namespace tenonnx::simnpu {

// The graph that ONNX Runtime hands over for the node that stands for it. Of an EPContext node, the
// context that it carries. `model` is the path of the model, "" for one that was given as bytes.
Result<Compiled> compile(const Ort::ConstGraph& graph, const Ort::ConstNode& fused,
                         const Settings& settings);

// Adds partitions to the provider's own record, a JSON file: docs/how_to/provider.md.
Status write_report(const std::vector<Compiled>& partitions, const Settings& settings);

}  // namespace tenonnx::simnpu
