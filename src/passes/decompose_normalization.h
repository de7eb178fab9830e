// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What the decompositions of LayerNormalization and RMSNormalization share.
#pragma once

#include <string>
#include <vector>

#include "passes/rewriter.h"

namespace tenonnx {

struct NormalizationParts {
  std::vector<std::int64_t> axes;  // negative, ascending, up to -1
  float epsilon = 1e-5F;
};

// Reads a node's attributes; returns why it cannot be decomposed, "" where it can.
std::string read_normalization(const Rewriter& r, const onnx::NodeProto& node,
                               NormalizationParts& parts);

}  // namespace tenonnx
