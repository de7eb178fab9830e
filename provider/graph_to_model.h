// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A graph of ONNX Runtime's as an ONNX model. By protobuf, because ONNX Runtime's own way of
// building a graph cannot take over attributes that hold tensors.
#pragma once

#include <onnxruntime_cxx_api.h>

#include "model/model.h"

namespace tenonnx::simnpu {

// Constant initializers become initializers of the model, all other inputs its inputs; names stay.
// Unsupported for nodes that hold graphs and for types that a Tensor does not hold.
Result<Model> graph_to_model(const Ort::ConstGraph& graph);

// "" for an optional input or output that is left out.
std::string name_of(const Ort::ConstValueInfo& value);
// kUndefined and no rank for what is no tensor.
TensorInfo info_of(const Ort::ConstValueInfo& value);

}  // namespace tenonnx::simnpu
