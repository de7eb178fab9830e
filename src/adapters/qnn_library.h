// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Where Qualcomm's provider lies. It is installed by the user's word alone (./dev vendor qnn, or
// the board's own package) and is no part of tenonnx.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tenonnx/base.h"

namespace tenonnx {

inline constexpr const char* kQnnLibraryFile = "libonnxruntime_providers_qnn.so";
inline constexpr const char* kQnnEnvironment = "TENONNX_QNN";

struct QnnLibrary {
  std::filesystem::path file;
  std::string version;  // "2.7.0"; "unknown" where nothing beside it says
  std::string qnn;      // of the backend libraries: "2.51.0"; "unknown"
};

// In this order, and where one is given nothing else is tried: `named` (the option library=), the
// environment variable TENONNX_QNN, the newest version that ./dev vendor qnn has installed to the
// end. Of a directory the file in it, or in its onnxruntime_qnn/. NotFound says how to get it.
Result<QnnLibrary> find_qnn_library(const std::filesystem::path& named);

// The parts of the search, apart for tests.
struct QnnSearch {
  std::filesystem::path named;
  std::optional<std::string> environment;
  std::filesystem::path cache;  // the directory that holds qnn-VERSION/; may be empty
};
Result<QnnLibrary> find_qnn_library(const QnnSearch& search);

// Qualcomm's plugin works with ONNX Runtime 1.29 to 1.31. FailedPrecondition for another.
Status check_qnn_runtime(const std::string& onnxruntime_version);

}  // namespace tenonnx
