// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A graph in an ONNX Runtime session: what every executor that runs on ONNX Runtime shares. An
// executor is this and a SessionSetup: `cpu` an empty one, the simulated device custom operators,
// a vendor's provider a hook that appends it.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ort/custom_ops.h"
#include "ort/executor.h"
#include "ort/placement.h"

namespace tenonnx {

struct SessionSetup {
  std::vector<std::shared_ptr<const CustomOpSet>> custom_ops;
  // Called after everything else has been set: appends providers, adds config entries. May throw
  // Ort::Exception; the message comes back as the Status of load_session.
  std::function<void(Ort::SessionOptions&)> configure;
  // What description() says of where it runs.
  std::string provider = "CPUExecutionProvider";
  // Shared weights (model/shared_weights.h) are inputs of the session, bound at every run to where
  // they lie: ONNX Runtime 1.29 copies those that it is handed as initializers, 80 MB in 0.05 s.
  // For graphs that are loaded without optimisation and packing, which look at no constant.
  bool binds_weights = false;
  // LoadOptions::disable_fallback reaches ONNX Runtime only where another provider is appended: for
  // the CPU provider alone it would refuse every model.
  bool appends_provider = false;
};

// The cpu with weights as they are and where they are in the model: ONNX Runtime packs those of a
// MatMul, and then adds in another order, so that a constant that a pass has made would come out
// with other bits.
SessionSetup without_packing();

// Serializes the model (external data stay in their mapping, nothing is inlined) and creates a
// session. Unsupported or InvalidArgument explain what ONNX Runtime refused: see errors.h.
Result<std::unique_ptr<LoadedGraph>> load_session(const Model& model, const LoadOptions& options,
                                                  const SessionSetup& setup);

// The assignment record of a graph that load_session() made: what the partitioner decided before
// the first run. Empty for any other graph.
const std::vector<AssignedNode>& assignment_of(const LoadedGraph& graph);

}  // namespace tenonnx
