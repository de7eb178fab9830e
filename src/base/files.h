// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Files that appear whole or not at all, mapped files, hashes, and paths that must not leave a
// directory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tenonnx/base.h"

namespace tenonnx {

// The whole file. NotFound, or Io with the operating system's reason; InvalidArgument for a
// directory.
Result<std::string> read_file(const std::filesystem::path& path);

// A read-only mapping of a whole file; unmapped with the last reference. An empty file maps to an
// empty view.
class MappedFile {
 public:
  static Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(const char* data, std::size_t size) : data_(data), size_(size) {}
  const char* data_;
  std::size_t size_;
};

// Writes beside `path`, flushes to the disk, then renames over it.
Status write_file_atomic(const std::filesystem::path& path, std::string_view bytes);
// The same from pieces, so that a model of several GB is never gathered in memory.
Status write_file_atomic(const std::filesystem::path& path,
                         std::span<const std::string_view> pieces);

// SHA-256 as 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);
Result<std::string> sha256_file(const std::filesystem::path& path);

// root / relative where that stays inside root, lexically and after symbolic links; else
// InvalidArgument. Absolute paths, "..", empty names and NUL are refused.
Result<std::filesystem::path> resolve_inside(const std::filesystem::path& root,
                                             std::string_view relative);

// A directory that is filled beside its final place and then put there in one step.
//
//   TENONNX_ASSIGN_OR_RETURN(auto staged, StagedDirectory::create("out/model-package", force));
//   ... write into staged.path() ...
//   TENONNX_RETURN_IF_ERROR(staged.publish());
//
// Where nothing stands at the final path: rename(). Where a directory stands there (and `replace`
// is set): renameat2 with RENAME_EXCHANGE, so that a process killed at any moment leaves the old or
// the new one; on a file system without it, a symbolic link that is switched (documented in
// docs/reference/package.md); where that is not possible either, an error. The destructor removes
// what was not published. Stale staging directories of killed processes are removed by create().
class StagedDirectory {
 public:
  static Result<StagedDirectory> create(const std::filesystem::path& final_path, bool replace);
  StagedDirectory(StagedDirectory&&) noexcept;
  StagedDirectory& operator=(StagedDirectory&&) noexcept;
  ~StagedDirectory();
  const std::filesystem::path& path() const { return staged_; }
  Status publish();

 private:
  StagedDirectory() = default;
  std::filesystem::path final_, staged_;
  bool replace_ = false;
};

}  // namespace tenonnx
