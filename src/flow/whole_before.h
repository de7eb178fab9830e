// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The graph before all passes, loaded and run on the first input while the passes run on another
// core: of a raw export that takes as long as the passes do.
#pragma once

#include <future>
#include <memory>

#include "flow/segments.h"
#include "flow/tensor_inputs.h"
#include "model/model.h"
#include "ort/executor.h"

namespace tenonnx {

// What check_whole loads graphs with: nothing of what is being checked is left to a fusion.
LoadOptions whole_load(LoadOptions load);

class WholeBefore {
 public:
  struct Ready {
    std::unique_ptr<LoadedGraph> graph;
    Observation first;  // of input 0; empty where there is none
  };
  // `before` and `inputs` are read until take() returns, or the destructor, which waits.
  WholeBefore(const Model& before, const TensorInputs& inputs, const LoadOptions& load);
  Result<Ready> take() { return future_.get(); }

 private:
  std::future<Result<Ready>> future_;
};

}  // namespace tenonnx
