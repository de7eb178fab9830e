// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Every node against the schema of its operator.
#pragma once

#include "tenonnx/base.h"

namespace onnx {
class ModelProto;
}  // namespace onnx

namespace tenonnx {

// Counts of inputs and outputs, attributes and their types, deprecated operators, domains that are
// not imported; in bodies and functions too. DataLoss names the node. Operators that onnx does not
// know are left to the runtime, and so are the types of tensors.
Status check_operators(const onnx::ModelProto& model);

}  // namespace tenonnx
