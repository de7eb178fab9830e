// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <algorithm>
#include <system_error>

#include "base/files.h"
#include "base/status.h"
#include "package/manifest.h"

namespace tenonnx {
namespace fs = std::filesystem;

Status write_package(const fs::path& directory, Manifest& manifest) {
  manifest.files.clear();
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    const fs::file_status status = it->symlink_status(error);
    if (error) break;
    if (fs::is_directory(status)) continue;
    const std::string relative = it->path().lexically_relative(directory).string();
    if (!fs::is_regular_file(status))
      return InvalidArgument("'{}' is not a file; a package holds only files", it->path().string());
    if (relative == "manifest.json")
      return FailedPrecondition("'{}' has a manifest already", directory.string());
    PackagedFile file{.path = relative};
    file.bytes = it->file_size(error);
    if (error) break;
    TENONNX_ASSIGN_OR_RETURN(file.sha256, sha256_file(it->path()));
    manifest.files.push_back(std::move(file));
  }
  if (error) return Io("cannot read '{}': {}", directory.string(), error.message());
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const PackagedFile& a, const PackagedFile& b) { return a.path < b.path; });
  const std::string where = fmt::format("package '{}'", directory.string());
  TENONNX_RETURN_IF_ERROR(check_manifest(manifest).at(where));
  return write_json_file(directory / "manifest.json", to_json(manifest)).at(where);
}

}  // namespace tenonnx
