// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A compiled context: written, reloaded from disk with fallback disabled, run, and compared with
// the session that compiled as it loaded.
#pragma once

#include <string>

#include "flow/placement_proof.h"
#include "model/model.h"

namespace tenonnx {

struct ContextRequest {
  const PlacementOptions& options;
  const std::string& address;
  const Model& prepared;
  const TensorMap& inputs;
  const TensorMap& expected;  // of the session without a context
};

// Adds checks. Errors are those of writing.
Status prove_context(const ContextRequest& request, PlacementResult& result);

}  // namespace tenonnx
