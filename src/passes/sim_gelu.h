// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The GELUs of the main graph that a device's compiler makes one operator of.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "model/model.h"

namespace tenonnx {

struct SimGelus {
  std::unordered_map<std::string, std::string> inputs;  // what a GELU writes -> its x
  std::unordered_set<std::string> inside;               // written by their other nodes
};

// Those written with Erf (gelu_pattern.h). A tensor inside that is an output of the graph as well
// does not hinder: what is captured must not change what is computed. The model is as before.
Result<SimGelus> find_sim_gelus(Model& model);

}  // namespace tenonnx
