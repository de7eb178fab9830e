// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/executor.h"

#include "base/status.h"
#include "ort/inputs.h"

namespace tenonnx {

std::string_view to_string(Optimization level) {
  switch (level) {
    case Optimization::kDisabled:
      return "disabled";
    case Optimization::kBasic:
      return "basic";
    case Optimization::kExtended:
      return "extended";
    case Optimization::kAll:
      return "all";
  }
  return "unknown";
}

Result<TensorMap> LoadedGraph::run(const TensorMap& given) {
  TENONNX_ASSIGN_OR_RETURN(const auto ordered, order_by_name(inputs(), given));
  std::vector<Tensor> results;
  TENONNX_RETURN_IF_ERROR(run(ordered, results));
  TensorMap named;
  for (std::size_t i = 0; i < outputs().size() && i < results.size(); ++i)
    named[outputs()[i].name] = results[i];
  return named;
}

}  // namespace tenonnx
