// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A fresh directory that goes with its object: for tests, and for work files of long jobs.
#pragma once

#include <filesystem>

#include "base/interrupt.h"

namespace tenonnx {

class TemporaryDirectory {
 public:
  // In the system's temporary directory (TMPDIR). path() is empty where none can be made.
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  RemovedOnInterrupt on_interrupt_;
};

}  // namespace tenonnx
