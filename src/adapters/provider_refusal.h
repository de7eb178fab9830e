// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// ONNX Runtime refuses a session in which nodes would fall back to the CPU, and does not name them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "model/model.h"
#include "ort/placement.h"

namespace tenonnx {

// What is seen where a provider that the session lists took nothing: "... and all 12 nodes ran on
// CPUExecutionProvider". `ran`: "ran" after a run, "would run" before.
std::string listed_but_unused(const std::string& provider, std::size_t nodes, std::string_view ran);
// What usually makes a vendor's provider do so, one a line.
std::vector<std::string> causes_of_unused(const Device& device);

// From the assignment record of a session with fallback allowed: how many nodes of which operators
// the provider left, and why, as the device file says. `model` is what the session ran.
std::string explain_refusal(const std::string& provider, const Device& device, const Model& model,
                            const std::vector<AssignedNode>& assigned);

}  // namespace tenonnx
