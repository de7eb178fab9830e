// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What Qualcomm's provider says when it does not take a graph, in plain words. Its messages go to a
// log, and ONNX Runtime's own error names no node. docs/how_to/qualcomm.md has each text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ort/placement.h"

namespace tenonnx {

// The layout transformation renames what it touches: 'a/Conv' is 'a/Conv_token_12' afterwards. The
// name in the model.
std::string model_name(const std::string& name);

// Nodes that were refused, from the log: "Unsupported nodes in QNN EP: { name: x, type: Y }",
// "QNN.backendValidateOpConfig() failed for node `x` of type `Y` with error code 3110". The
// provider looks at a graph several times; each node once.
struct RefusedNode {
  std::string node, type;
};
std::vector<RefusedNode> refused_nodes(const std::vector<std::string>& messages);

// What is known of the first message that is known, and what to do; "" for none.
std::string known_cause(const std::vector<std::string>& messages);

// Everything that is known of a session that could not be made, or that would run nodes on the CPU:
// `error` is ONNX Runtime's (may be empty), `assigned` the assignment record of a session that may
// fall back (may be empty).
std::string explain_qnn_refusal(std::string_view error, const std::vector<std::string>& messages,
                                const std::vector<AssignedNode>& assigned);

}  // namespace tenonnx
