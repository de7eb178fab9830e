// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/staged_files.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include "base/status.h"

namespace tenonnx {
namespace fs = std::filesystem;

Status check_output_file(const fs::path& path, bool force) {
  std::error_code error;
  if (fs::is_directory(path, error))
    return InvalidArgument("the output '{}' is a directory: name a file in it", path.string());
  if (fs::exists(path, error) && !fs::is_regular_file(path, error))
    return InvalidArgument("the output '{}' is no regular file: it would be replaced by one",
                           path.string());
  if (fs::exists(path, error) && !force)
    return FailedPrecondition("'{}' exists: --force replaces it", path.string());
  return {};
}

Result<StagedFiles> StagedFiles::create(const fs::path& out) {
  StagedFiles staged;
  std::error_code error;
  const fs::path path = fs::absolute(out, error);
  staged.target_ = path.parent_path();
  if (error || !fs::is_directory(staged.target_, error))
    return NotFound("there is no directory '{}' to write '{}' into", out.parent_path().string(),
                    out.filename().string());
  auto staging = open_staging(path, out);
  if (!staging.ok()) return staging.status();
  staged.staging_ = std::move(staging).value();
  return staged;
}

Status StagedFiles::publish(const std::string& last) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path(), error))
    names.push_back(entry.path().filename().string());
  if (error) return Io("cannot read '{}': {}", path().string(), error.message());
  std::stable_partition(names.begin(), names.end(),
                        [&](const std::string& name) { return name != last; });
  const auto hold = hold_interrupt();  // all of them, or none
  for (const std::string& name : names) {
    fs::rename(path() / name, target_ / name, error);
    if (error) return Io("cannot write '{}': {}", (target_ / name).string(), error.message());
  }
  staging_.on_interrupt.result_stands(path());
  return {};
}

}  // namespace tenonnx
