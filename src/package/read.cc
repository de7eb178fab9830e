// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <set>
#include <system_error>

#include "base/files.h"
#include "base/status.h"
#include "package/manifest.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kManifestFile = "manifest.json";

Result<Manifest> read_manifest(const fs::path& package) {
  std::error_code error;
  const fs::file_status status = fs::status(package, error);
  if (!fs::exists(status)) return NotFound("there is no package '{}'", package.string());
  if (!fs::is_directory(status))
    return InvalidArgument("'{}' is not a package: a package is a directory with a {}",
                           package.string(), kManifestFile);
  const fs::path path = package / kManifestFile;
  const fs::file_status own = fs::symlink_status(path, error);
  if (!fs::exists(own))
    return NotFound("'{}' is not a package: it has no {}", package.string(), kManifestFile);
  if (!fs::is_regular_file(own)) return InvalidArgument("'{}' is not a file", path.string());
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error) return Io("cannot read '{}': {}", path.string(), error.message());
  if (bytes > kMaxManifestBytes)
    return DataLoss("'{}' has {} bytes, allowed are {}; it is not read", path.string(), bytes,
                    kMaxManifestBytes);
  TENONNX_ASSIGN_OR_RETURN(const Json json, read_json_file(path));
  TENONNX_ASSIGN_OR_RETURN(Manifest manifest, manifest_from_json(JsonReader(json, path.string())));
  TENONNX_RETURN_IF_ERROR(check_manifest(manifest).at(path.string()));
  return manifest;
}

Status check_file(const fs::path& package, const PackagedFile& file) {
  TENONNX_ASSIGN_OR_RETURN(const fs::path path, resolve_inside(package, file.path));
  // The path as it would be walked: "a/../b" and "a//b" name files that the walk would not find.
  if (fs::path(file.path).lexically_normal().string() != file.path || file.path == kManifestFile)
    return DataLoss("path '{}' is not the plain path of a packaged file", file.path);
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) return DataLoss("file '{}' is missing", file.path);
  if (!fs::is_regular_file(status))
    return DataLoss("'{}' is {}, not a file", file.path,
                    fs::is_symlink(status)     ? "a symbolic link"
                    : fs::is_directory(status) ? "a directory"
                                               : "a device or pipe");
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error) return Io("cannot read '{}': {}", path.string(), error.message());
  if (bytes != file.bytes)
    return DataLoss("file '{}' has {} bytes, the manifest says {}: it was changed after the deploy",
                    file.path, bytes, file.bytes);
  TENONNX_ASSIGN_OR_RETURN(const std::string sha256, sha256_file(path));
  if (sha256 != file.sha256)
    return DataLoss(
        "file '{}' has SHA-256 {}, the manifest says {}: it was changed after the deploy",
        file.path, sha256, file.sha256);
  return {};
}

Status check_nothing_else(const fs::path& package, const Manifest& manifest) {
  std::set<std::string> named = {std::string(kManifestFile)};
  for (const PackagedFile& file : manifest.files) named.insert(file.path);
  std::error_code error;
  for (fs::recursive_directory_iterator it(package, error), end; !error && it != end;
       it.increment(error)) {
    const fs::file_status status = it->symlink_status(error);
    if (error) break;
    if (fs::is_directory(status)) continue;
    const std::string relative = it->path().lexically_relative(package).string();
    if (!named.contains(relative))
      return DataLoss("'{}' is in the package, but the manifest does not name it; remove it",
                      relative);
  }
  if (error) return Io("cannot read '{}': {}", package.string(), error.message());
  return {};
}

}  // namespace

Status may_replace_package(const fs::path& directory) {
  std::set<std::string> named;
  std::error_code error;
  const fs::path path = directory / kManifestFile;
  // Read leniently: the package of another version, or one whose files have changed, may go.
  if (fs::is_regular_file(fs::symlink_status(path, error)) &&
      fs::file_size(path, error) <= kMaxManifestBytes) {
    const auto json = read_json_file(path);
    if (json.ok() && json->is_object() && json->contains("segments") && json->contains("files") &&
        json->at("files").is_array())
      for (const Json& file : json->at("files"))
        if (file.is_object() && file.contains("path") && file.at("path").is_string())
          named.insert(file.at("path").get<std::string>());
  }
  if (!named.empty()) named.emplace(kManifestFile);
  return holds_only(directory, "a package",
                    [&](const std::string& relative) { return named.contains(relative); });
}

Result<Manifest> read_package(const fs::path& package) {
  TENONNX_ASSIGN_OR_RETURN(Manifest manifest, read_manifest(package));
  const std::string where = fmt::format("package '{}'", package.string());
  for (const PackagedFile& file : manifest.files)
    TENONNX_RETURN_IF_ERROR(check_file(package, file).at(where));
  TENONNX_RETURN_IF_ERROR(check_nothing_else(package, manifest).at(where));
  return manifest;
}

}  // namespace tenonnx
