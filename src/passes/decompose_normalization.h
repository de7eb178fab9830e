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

// Writes nodes right before node `at` and names what they make after that node's output.
class ChainWriter {
 public:
  ChainWriter(Rewriter& r, int at) : r_(r), at_(at), base_(r.node(at).output(0)) {}
  // Returns the name of the output.
  std::string add(const char* op_type, const std::vector<std::string>& inputs);
  std::string constant(double value);
  // ReduceMean, axes kept: an attribute up to opset 17, an input from 18 on.
  std::string mean(const std::string& x, const std::vector<std::int64_t>& axes);
  // Sqrt(mean(x * x) + epsilon)
  std::string root_mean_square(const std::string& x, const NormalizationParts& parts);

 private:
  Rewriter& r_;
  int at_;
  std::string base_;
};

}  // namespace tenonnx
