// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a model must satisfy before anything else looks at it. Source: ONNX IR specification.
#pragma once

#include <string_view>

#include "tenonnx/base.h"

namespace onnx {
class ModelProto;
}  // namespace onnx

namespace tenonnx {

class Model;

// IR and opset within what ONNX Runtime 1.29 takes, a graph, one producer for every tensor, no
// dangling input (also in If/Loop/Scan bodies and in functions), no cycle, every graph output made,
// every tensor's data as long as its shape says, every node as its operator's schema wants it
// (check_operators.h). Names the tensor and the nodes. The nodes must be
// sorted already.
Status check_model(const Model& model, std::string_view where);

// The part that needs no external files.
Status check_proto(const onnx::ModelProto& proto, std::string_view where);

}  // namespace tenonnx
