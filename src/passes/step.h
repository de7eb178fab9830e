// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// One pass on one graph, as every runner takes it: the opset, the run, the check of the graph.
#pragma once

#include "model/model.h"
#include "passes/runner.h"
#include "tenonnx/base.h"

namespace tenonnx {

// Unsupported where the model imports an opset that the pass does not take.
Status check_opset(const PassInfo& pass, const Model& model);

// Runs the pass, and checks the graph where it says that it changed something. `options`: the
// pass's own. Internal: a defect of the pass, not of the caller: a graph that is not valid, or a
// contradiction that it met. Else the pass's own error. The graph may be changed in part on an
// error.
Result<PassOutcome> run_step(const PassInfo& pass, Model& model, const PassOptions& options);

}  // namespace tenonnx
