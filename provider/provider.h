// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The provider of one session: takes nodes, compiles partitions.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <string>
#include <vector>

#include "compile.h"
#include "options.h"

namespace tenonnx::simnpu {

class Provider final : public OrtEp {
 public:
  Provider(Settings settings, const OrtLogger* logger);

 private:
  Status capability(const OrtGraph* graph, OrtEpGraphSupportInfo* info);
  Status compile_all(const OrtGraph** graphs, const OrtNode** fused, std::size_t count,
                     OrtNodeComputeInfo** kernels, OrtNode** context_nodes);
  void warn(const std::string& message) const;

  const Settings settings_;
  const OrtLogger* const logger_;
  const std::string compatibility_;
  std::vector<Compiled> compiled_;  // without their models: for the report
};

}  // namespace tenonnx::simnpu
