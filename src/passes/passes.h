// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The functions of passes.inc. Callers go through the runner; passes may use one another.
#pragma once

#include "passes/runner.h"

namespace tenonnx::passes {

// `options` are the pass's own, without the prefix "<pass>.". On an error the model may be changed
// in part: the runner works on a copy.
#define TENONNX_PASS(name, stage, min_opset, max_opset, exactness, summary) \
  Result<PassOutcome> name(Model& model, const PassOptions& options);
#include "passes/passes.inc"
#undef TENONNX_PASS

}  // namespace tenonnx::passes
