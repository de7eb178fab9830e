// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/ops_library.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "base/files.h"
#include "base/own_directory.h"
#include "base/status.h"

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
  return find_own_library("the library of the operators of domain 'tenonnx'", kOpsLibraryFile,
                          "TENONNX_OPS", configured);
}

Status copy_ops_library(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  const fs::path to = directory / kOpsLibraryFile;
  std::error_code error;
  if (fs::exists(to, error)) return {};
  TENONNX_ASSIGN_OR_RETURN(const fs::path from, find_ops_library());
  if (!fs::copy_file(from, to, error))
    return Io("cannot copy '{}' to '{}': {}", from.string(), to.string(), error.message());
  return {};
}

Status check_ops_library(const std::filesystem::path& package, const Model& model) {
  if (!uses_ops_library(model)) return {};
  const std::filesystem::path packaged = package / kOpsLibraryFile;
  std::error_code error;
  if (!std::filesystem::is_regular_file(packaged, error))
    return DataLoss(
        "it holds operators of domain '{}', and the package has no '{}' that it was proved with: "
        "deploy the model again",
        kOpsDomain, kOpsLibraryFile);
  TENONNX_ASSIGN_OR_RETURN(const std::filesystem::path own, find_ops_library());
  TENONNX_ASSIGN_OR_RETURN(const std::string expected, sha256_file(packaged));
  TENONNX_ASSIGN_OR_RETURN(const std::string found, sha256_file(own));
  if (expected == found) return {};
  return FailedPrecondition(
      "the package was proved with a '{}' of SHA-256 {}, this program's ('{}') has {}: deploy "
      "again "
      "with this program; or, where you trust the package, set TENONNX_OPS to '{}', which runs the "
      "code in it",
      kOpsLibraryFile, expected, own.string(), found, packaged.string());
}

}  // namespace tenonnx
