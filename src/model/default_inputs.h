// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Initializers that are inputs of the graph too: the values of inputs that a caller leaves out, and
// no constants, since he may give others (from IR 4 on; before, every initializer had to be listed
// as an input and was a constant all the same). Source: ONNX IR, "Graphs".
#pragma once

#include <string_view>
#include <unordered_set>

namespace onnx {
class ModelProto;
}

namespace tenonnx {

// Names of the main graph's initializers that a caller may override; views into the proto.
std::unordered_set<std::string_view> default_inputs(const onnx::ModelProto& model);

// Takes inputs that have an initializer out of the list of inputs: constants from now on. Returns
// how many there were.
int pin_default_inputs(onnx::ModelProto& model);

}  // namespace tenonnx
