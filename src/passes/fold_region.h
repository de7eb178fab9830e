// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Evaluates nodes whose inputs are all constant, with the kernels of ONNX Runtime and in one
// session for all of them: a kernel of our own could differ from the one that would have run.
#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace onnx {
class NodeProto;
class TensorProto;
}  // namespace onnx

namespace tenonnx {

struct Region {
  std::vector<const onnx::NodeProto*> nodes;        // in topological order
  std::vector<const onnx::TensorProto*> constants;  // what the nodes take from outside
  std::vector<TensorInfo> outputs;                  // wanted values; kUndefined where unknown
};

// The values of `outputs`, in their order; optimisation disabled, one thread. External data of
// `model` is read where constants refer to it. On an error nothing is known of which node it was.
Result<std::vector<Tensor>> evaluate(const Model& model, const Region& region);

}  // namespace tenonnx
