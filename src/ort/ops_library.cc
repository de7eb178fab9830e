// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/ops_library.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/own_directory.h"

namespace tenonnx {

bool uses_ops_library(const Model& model) {
  const auto& imports = model.proto().opset_import();
  return std::any_of(imports.begin(), imports.end(),
                     [](const auto& import) { return import.domain() == kOpsDomain; });
}

Result<std::filesystem::path> find_ops_library() {
#ifdef TENONNX_DEFAULT_OPS_LIBRARY
  const std::filesystem::path configured = TENONNX_DEFAULT_OPS_LIBRARY;
#else
  const std::filesystem::path configured;
#endif
  return find_own_library("the library of the operators of domain 'tenonnx'", "libtenonnx_ops.so",
                          "TENONNX_OPS", configured);
}

}  // namespace tenonnx
