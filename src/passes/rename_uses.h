// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Other names for what a node takes, where a node is put into another graph.
#pragma once

#include <string>
#include <unordered_map>

namespace onnx {
class NodeProto;
}  // namespace onnx

namespace tenonnx {

// Inputs, and what the bodies of If, Loop and Scan capture; all at once, so that two tensors may
// swap their names. In a body a name that it defines itself is another tensor.
void rename_uses(onnx::NodeProto& node, const std::unordered_map<std::string, std::string>& names);

}  // namespace tenonnx
