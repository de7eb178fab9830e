// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What a device file's rules (section "supported") ask of a graph: which passes bring it within
// them, and which nodes they do not take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "device/device.h"
#include "model/model.h"

namespace tenonnx {

// Nodes of one operator that no rule takes, for one reason.
struct NotTaken {
  std::string op_type;
  std::string reason;              // "mode is 'bicubic', not 'bilinear', 'linear', 'nearest'"
  std::string advice;              // what to do; empty where nothing is known
  std::vector<std::string> nodes;  // by name, else by first output, in the graph's order
};

// By operator, then in the graph's order. Erf within GELU, which vendors' compilers fuse, is taken;
// one that is nearly a GELU is told why it is none.
std::vector<NotTaken> not_taken(const Model& model, const Device& device);
// "devices/qcs9075.json does not take 2 GridSample, first 'gs0': mode is ...; rewrite ..."
std::string describe(const NotTaken& one, const Device& device);
Json to_json(const std::vector<NotTaken>& nodes);

// Why a pass is to run, and with what: one of collapse_rank, convert_opset, fuse_gelu.
struct DeviceNeed {
  std::string why;          // "2 nodes above rank 5, first 'mul'"
  std::int64_t option = 0;  // max_rank, target; none for fuse_gelu
};
// Where tensors are above the largest rank of the rules.
std::optional<DeviceNeed> need_lower_rank(const Model& model, const Device& device);
// Where at another opset the rules take more of the nodes: the nearest of those where they take
// most. Whether the model can be moved there is the pass's to say.
std::optional<DeviceNeed> need_other_opset(const Model& model, const Device& device);
// Where the rules take Gelu at the model's opset, and not the Erf of which a GELU is made. (An
// opset without Gelu leaves that to the compiler.)
std::optional<DeviceNeed> need_gelu(const Model& model, const Device& device);

}  // namespace tenonnx
