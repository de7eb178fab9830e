// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Types and shapes of the tensors of the main graph, by onnx's own inference.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "model/model.h"

namespace tenonnx {

using TensorInfos = std::unordered_map<std::string, TensorInfo>;

// What is recorded and what onnx's inference with data propagation adds (inputs, outputs,
// initializers, node outputs of the main graph). A tensor whose type cannot be known (behind an
// operator of an unknown domain) is absent; one of known dtype and unknown rank has has_rank false.
// Never fails: nodes that inference cannot deal with end it there. Does not copy initializers
// beyond 4 KiB, and does not change the model.
TensorInfos infer_shapes(const Model& model);
// The same for `tensors` and what lies before them: a fraction of the time where they are early in
// a large graph.
TensorInfos infer_shapes(const Model& model, const std::vector<std::string>& tensors);

// The same written into the model as value_info, symbolic dimensions ("batch") kept.
Status annotate_shapes(Model& model);

}  // namespace tenonnx
