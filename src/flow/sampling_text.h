// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#pragma once

#include <string>
#include <string_view>

#include "passes/proof_sampling.h"

namespace tenonnx {

// What the proof found about the sampling nodes of one region, for a screen: a line that names
// them, then a table and lines indented by `indent`.
std::string describe(const SamplingProof& proof, std::string_view indent);

}  // namespace tenonnx
