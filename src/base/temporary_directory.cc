// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/temporary_directory.h"

#include <stdlib.h>

#include <string>
#include <system_error>

namespace tenonnx {
namespace fs = std::filesystem;

TemporaryDirectory::TemporaryDirectory() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "tenonnx-XXXXXX").string();
  if (error) return;
  const auto hold = hold_interrupt();
  if (::mkdtemp(name.data()) == nullptr) return;
  path_ = name;
  on_interrupt_ = RemovedOnInterrupt(path_);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

}  // namespace tenonnx
