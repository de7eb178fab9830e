// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which passes `optimize` and `rewrite` run.
#pragma once

#include <vector>

#include "flow/optimize.h"
#include "passes/runner.h"

namespace tenonnx {

// The passes that run, fix_input_shapes apart: those of rewrite in the order in which they are
// named (a fusion that needs another opset comes behind convert_opset), else in the table's.
// NotFound: no such pass. InvalidArgument: only or skip name a pass that optimize does not run;
// nothing is left.
Result<std::vector<const PassInfo*>> choose_passes(const OptimizeOptions& options);

}  // namespace tenonnx
