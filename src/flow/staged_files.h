// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Several files that appear in one directory, renamed into their places when all are written.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/staging.h"
#include "tenonnx/base.h"

namespace tenonnx {

// Whether a command may write `path`. InvalidArgument for a directory, and for what is no regular
// file (a device, say, which would be replaced); FailedPrecondition where it exists, without
// `force`.
Status check_output_file(const std::filesystem::path& path, bool force);

// A directory beside `out`, from which files are renamed into their places. What is not published
// goes with the object.
class StagedFiles {
 public:
  // NotFound where the directory of `out` does not exist, Io where it cannot be written.
  static Result<StagedFiles> create(const std::filesystem::path& out);
  StagedFiles(StagedFiles&& other) noexcept
      : target_(std::move(other.target_)), staging_(std::exchange(other.staging_, {})) {}
  StagedFiles& operator=(StagedFiles&&) = delete;
  ~StagedFiles() { close_staging(staging_); }
  const std::filesystem::path& path() const { return staging_.path; }
  // The named file last: it is what others look for.
  Status publish(const std::string& last);

 private:
  StagedFiles() = default;
  std::filesystem::path target_;
  Staging staging_;
};

}  // namespace tenonnx
