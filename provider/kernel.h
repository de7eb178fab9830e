// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A partition that runs: an inner session of the partition's model.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <memory>
#include <string>
#include <vector>

#include "context.h"
#include "ort/executor.h"

namespace tenonnx::simnpu {

class Kernel final : public OrtNodeComputeInfo {
 public:
  // The inner session runs the compiled graph as it stands: optimisation disabled.
  static Result<std::unique_ptr<Kernel>> create(const Compiled& compiled,
                                                const SimNpuOptions& options);

 private:
  Kernel();
  Status compute(OrtKernelContext* context) const;

  std::string partition_;
  std::string no_kernel_;  // why compute() fails; "" where it does not
  std::unique_ptr<LoadedGraph> graph_;
  std::vector<std::size_t> inputs_, outputs_;  // of graph_ -> position at the node
};

}  // namespace tenonnx::simnpu
