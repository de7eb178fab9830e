// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Writes the chain of nodes that a decomposition puts before, or in the place of, one node.
#pragma once

#include <string>
#include <vector>

#include "passes/rewriter.h"

namespace tenonnx {

// New nodes stand right before node `at`; what they make is named after that node's output. Between
// Rewriter::begin() and apply().
class ChainWriter {
 public:
  ChainWriter(Rewriter& r, int at) : r_(r), at_(at), base_(r.node(at).output(0)) {}
  // Returns the name of the output.
  std::string add(const char* op_type, const std::vector<std::string>& inputs);
  // A float32 constant of rank 0.
  std::string constant(double value);
  // ReduceMean, axes kept: an attribute up to opset 17, an input from 18 on.
  std::string mean(const std::string& x, const std::vector<std::int64_t>& axes);
  // Sqrt(mean(x * x) + epsilon)
  std::string root_mean_square(const std::string& x, const std::vector<std::int64_t>& axes,
                               float epsilon);

 private:
  std::string insert(const char* op_type, onnx::NodeProto node);
  Rewriter& r_;
  int at_;
  std::string base_;
};

}  // namespace tenonnx
