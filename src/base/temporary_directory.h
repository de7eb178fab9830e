// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A fresh directory that goes with its object: for tests, and for work files of long jobs.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace tenonnx {

class TemporaryDirectory {
 public:
  // In the system's temporary directory (TMPDIR). path() is empty where none can be made.
  TemporaryDirectory() {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "tenonnx-XXXXXX").string();
    if (!error && ::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tenonnx
