// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a graph goes through before it is cut: dynamic inputs made static where asked for, constants
// and shape subgraphs folded. A part that is cut out of an unfolded export keeps shape arithmetic
// without inputs, which vendors' compilers reject.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/model.h"
#include "passes/runner.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct Preparation {
  std::map<std::string, std::string> input_shapes;  // "images" -> "1x3x640x640"
  bool fold_constants = true;
};

Result<std::vector<PassReport>> prepare_graph(Model& model, const Preparation& preparation);

}  // namespace tenonnx
