// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the file of a pass includes. A pass is one function in namespace tenonnx::passes,
//   namespace passes {
//   Result<PassOutcome> fuse_gelu(Model& model, const PassOptions& options) { ... }
//   }
// with the pass's own options, without the prefix "<pass>."; on an error the model may be changed
// in part: the runner works on a copy. passes.inc lists it. The declarations are runner.cc's alone:
// were they here, each new line would compile every pass anew.
#pragma once

#include "passes/options.h"
#include "passes/runner.h"
