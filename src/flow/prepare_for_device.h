// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a device file's rules ask of a graph before a vendor's compiler sees it: passes that are
// chosen by the rules, each proved when it has run, and a list of the nodes that no rule takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "device/device.h"
#include "flow/device_needs.h"
#include "flow/tensor_inputs.h"
#include "metrics/limit.h"
#include "model/model.h"
#include "ort/executor.h"
#include "passes/fixed_point.h"
#include "tenonnx/contract.h"

namespace tenonnx {

struct DevicePreparationOptions {
  bool fold_constants = true;
  // Leaves out the passes that are not bitwise: where what runs on the cpu is made of the same
  // graph.
  bool bitwise_only = false;
  const Contract* contract = nullptr;
  std::uint64_t seed = 1;
  LoadOptions load;
  Progress progress;
};

// One pass, as the file chose it.
struct ChosenPass {
  std::string why;  // "2 nodes above rank 5, first 'mul'"
  PassRun run;      // its proofs in it; undone where one failed
};

struct DevicePreparation {
  // Of the bitwise passes alone, which the graph level of a deploy compares bit by bit with the
  // model as it was given; and of all of them, for the compiler. The same where there are no other.
  Model plain, compiled;
  bool differ = false;
  std::vector<ChosenPass> passes;
  // Of the passes that are not bitwise: their proofs, and `plain` against `compiled` as a whole.
  std::vector<Check> checks;
  std::vector<NotTaken> not_taken;  // of `compiled`
  std::vector<std::string> notes;   // sentences, those on not_taken among them
};

// In this order, where they have something to do: fold_constants (no shape arithmetic in what the
// compiler sees), collapse_rank to the largest rank of the rules, convert_opset to where the rules
// take most nodes, fuse_gelu where they take Gelu and no Erf. The first two are bitwise. A pass
// whose proof fails is undone and said so. Without rules in the file: fold_constants alone.
Result<DevicePreparation> prepare_for_device(const Model& model, const Device& device,
                                             const TensorInputs& inputs,
                                             const DevicePreparationOptions& options);

// For people: a line a pass, with why and what its proof says; "" for none.
std::string describe(const std::vector<ChosenPass>& passes);
// {"name", "class", "why", "applied", "skipped", "verdict", "undone", "proof"}: docs/reference/
// package.md, "settings".
Json to_json(const ChosenPass& pass);

}  // namespace tenonnx
