// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Tensors of a node under other names, in its bodies too.
#pragma once

#include <string>
#include <unordered_map>

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace tenonnx {

using TensorNames = std::unordered_map<std::string, std::string>;  // old -> new

// What the node reads: its inputs, and what its bodies capture. A body's own names stay, which
// Model::load has made different from those outside.
void rename_reads(onnx::NodeProto& node, const TensorNames& names);
// The same and what it makes.
void rename_node(onnx::NodeProto& node, const TensorNames& names);

}  // namespace tenonnx
