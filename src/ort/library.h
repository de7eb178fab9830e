// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// ONNX Runtime, opened at run time, so that any version from 1.29 on serves (a vendor's build with
// its own provider included) and a program without it still starts and can say what is missing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tenonnx/base.h"

struct OrtApiBase;
struct OrtEnv;

namespace tenonnx {

// The API version that we compile against and ask for. A newer library hands out older versions of
// its table, so this is the oldest library that serves: 1.29.
inline constexpr int kOrtApiVersion = 29;

struct OnnxRuntime {
  std::filesystem::path path;  // of the file that was opened, as the loader resolved it
  std::string version;         // "1.29.0"
  std::string build_info;      // git branch and commit, build type, flags
};

// Opens the library on the first call and keeps it for the life of the process; later calls return
// the same library or the same error. Thread-safe. Search order:
//   1. the environment variable TENONNX_ONNXRUNTIME, a file or a directory (itself or its lib/);
//      where it is set nothing else is tried
//   2. the directory of the executable or library that holds this code, then ../lib beside it, then
//      its lib/
//   3. the library that the build was configured with
//   4. the loader's own search for libonnxruntime.so.1 (LD_LIBRARY_PATH, ldconfig)
// NotFound lists what was tried; FailedPrecondition gives the path and version of a library that is
// too old.
Result<const OnnxRuntime*> onnxruntime();

// For a library that ONNX Runtime loads, as a provider: takes the runtime that called it instead of
// opening one. Before the first onnxruntime(). FailedPrecondition where it is too old, or another.
Status adopt_onnxruntime(const OrtApiBase& base);

// The process's one environment (OrtEnv is a singleton inside ONNX Runtime). It is never destroyed:
// sessions in static objects may outlive any order of destruction. Its messages go to the log sink
// as debug messages, since what matters in them comes back as a Status. Null before onnxruntime()
// has succeeded.
OrtEnv* onnxruntime_env();

// The parts of the search, apart for tests.
struct LibrarySearch {
  std::optional<std::string> environment;          // TENONNX_ONNXRUNTIME
  std::vector<std::filesystem::path> directories;  // of 2.
  std::filesystem::path configured;                // of 3.; may be empty
};
// Files to be tried, in order, and a last bare name for the loader. NotFound where the environment
// names what does not exist.
Result<std::vector<std::filesystem::path>> library_candidates(const LibrarySearch& search);
// FailedPrecondition where the library does not offer kOrtApiVersion.
Status check_library_version(const OrtApiBase& base, const std::filesystem::path& path);

}  // namespace tenonnx
