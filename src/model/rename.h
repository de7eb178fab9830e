// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Tensors under other names, all at once, so that two may swap their names.
#pragma once

#include <string>
#include <unordered_map>

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace tenonnx {

using TensorNames = std::unordered_map<std::string, std::string>;  // old -> new

// What the node reads: its inputs, and what its bodies capture. In a body a name that it defines
// itself is another tensor, and stays.
void rename_reads(onnx::NodeProto& node, const TensorNames& names);
// The same and what it makes.
void rename_node(onnx::NodeProto& node, const TensorNames& names);
// Everything of a main graph but its inputs.
void rename_graph(onnx::GraphProto& graph, const TensorNames& names);

}  // namespace tenonnx
