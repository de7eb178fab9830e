// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What error messages want to know of a model.
#pragma once

#include <string>
#include <string_view>

#include "model/model.h"

namespace tenonnx {

// "x float64 [1,1,4,4]; grid float64 [1,2,2,2]" of the node with this name and type, subgraphs
// included; "" where it is not found.
std::string inputs_of_node(const Model& model, std::string_view name, std::string_view op_type);

// "'a', 'b', 'c' and 4 more": the nodes of a type, subgraphs included.
std::string nodes_of_type(const Model& model, std::string_view op_type, std::string_view domain);

}  // namespace tenonnx
