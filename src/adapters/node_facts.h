// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A model's nodes as the rules of a device file see them.
#pragma once

#include <vector>

#include "device/supported.h"
#include "model/model.h"

namespace tenonnx {

// One entry a node of the main graph, in its order. The model must outlive them. Types and shapes
// are inferred; an initializer or the output of a Constant is a constant.
std::vector<NodeFacts> node_facts(const Model& model);

// Gives a node of the main graph that has no name, or that of an earlier one, the name of its first
// output: profiles and records know nodes by name alone.
void name_nodes(Model& model);

}  // namespace tenonnx
