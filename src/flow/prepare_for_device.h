// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a device file's rules ask of a graph before a vendor's compiler sees it: passes that are
// chosen by the rules, and a list of the nodes that no rule takes.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "model/model.h"
#include "passes/runner.h"

namespace tenonnx {

struct DevicePreparation {
  std::vector<PassReport> passes;
  std::vector<std::string> notes;  // sentences
};

// Tensors above the largest rank of the rules: collapse_rank, which is bitwise (the deploy's graph
// level compares with the model as it was given). What the rules do not take after it is a note, by
// operator, with the first node, the reason and, where there is one, the pass that helps; Erf
// within GELU, which vendors' compilers fuse, is taken. Nothing for a file without rules.
Result<DevicePreparation> prepare_for_device(Model& prepared, const Device& device);

}  // namespace tenonnx
