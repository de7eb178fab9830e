// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A directory beside what is to be written, ".<final>.staged-<pid>-<random>", in which it is made:
// StagedDirectory exchanges it as a whole, who writes several files renames them out of it.
#pragma once

#include <filesystem>

#include "base/interrupt.h"
#include "tenonnx/base.h"

namespace tenonnx {

struct Staging {
  std::filesystem::path path;  // empty: nothing to remove
  int lock = -1;               // tells that its process lives, to other pid namespaces too
  RemovedOnInterrupt on_interrupt;
};

// Makes and locks it, and removes those of the same path whose process is dead. `final_path` is
// absolute and its parent exists; `named` is how the user calls it. Io.
Result<Staging> open_staging(const std::filesystem::path& final_path,
                             const std::filesystem::path& named);
// Removes the directory and releases the lock.
void close_staging(Staging& staging);

}  // namespace tenonnx
