// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Which operators select: behind them a small error is another order or another set of rows.
#pragma once

namespace onnx {
class NodeProto;
}  // namespace onnx

namespace tenonnx {

// TopK, ArgMax, ArgMin, NonMaxSuppression, NonZero, Unique, and operators of other domains whose
// name holds "NMS". Bodies of the node are not looked into.
bool is_selection(const onnx::NodeProto& node);

}  // namespace tenonnx
