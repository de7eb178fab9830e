// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Files that appear whole or not at all, mapped files, hashes, and paths that must not leave a
// directory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "tenonnx/base.h"

namespace tenonnx {

// The whole file. NotFound, or Io with the operating system's reason; InvalidArgument for a
// directory.
Result<std::string> read_file(const std::filesystem::path& path);

// A read-only mapping of a whole file; unmapped with the last reference. An empty file maps to an
// empty view. Another process that shortens the file while it is mapped ends this one (SIGBUS), as
// with every mmap; files that are replaced by rename are safe.
class MappedFile {
 public:
  static Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return {data_, size_}; }
  // Lets the kernel take the pages of `part` (a part of bytes()) back; they are read again on the
  // next access. For passing once over a file that is larger than memory.
  void release(std::string_view part) const;
  // True where the file system stores nothing for `part`: it is zeros, known without reading.
  bool in_hole(std::string_view part) const;

 private:
  MappedFile(const char* data, std::size_t size) : data_(data), size_(size) {}
  const char* data_;
  std::size_t size_;
  std::vector<std::pair<std::size_t, std::size_t>> holes_;  // [begin, end), sorted
};

// Writes beside `path`, flushes to the disk, then renames over it.
Status write_file_atomic(const std::filesystem::path& path, std::string_view bytes);
// The same from pieces, so that a model of several GB is never gathered in memory.
Status write_file_atomic(const std::filesystem::path& path,
                         std::span<const std::string_view> pieces);

// A file of unknown length that appears whole or not at all: written beside `path`, put there by
// commit(), removed by the destructor where it was not committed.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::filesystem::path& path);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();
  Status append(std::string_view bytes);
  // Zeros, as a hole where the file system has holes.
  Status append_zeros(std::uint64_t count);
  std::uint64_t size() const { return size_; }
  // Flushes to the disk and renames over `path`.
  Status commit();

 private:
  AtomicFile() = default;
  std::filesystem::path path_, temporary_;
  RemovedOnInterrupt on_interrupt_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

// SHA-256 of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::string_view bytes);
  std::string hex();  // ends it

 private:
  void* context_;
};

// SHA-256 as 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);
Result<std::string> sha256_file(const std::filesystem::path& path);

// root / relative where that stays inside root, lexically and after symbolic links; else
// InvalidArgument. Absolute paths, "..", empty names and NUL are refused.
Result<std::filesystem::path> resolve_inside(const std::filesystem::path& root,
                                             std::string_view relative);

// Flushes a file or directory to the disk.
Status sync_path(const std::filesystem::path& path);

// "<pid>-<random>": the end of the name of something temporary.
std::string random_suffix();

// A directory that is filled beside its final place and then put there in one step.
//
//   TENONNX_ASSIGN_OR_RETURN(auto staged, StagedDirectory::create("out/model-package", force,
//   may_replace));
//   ... write into staged.path() ...
//   TENONNX_RETURN_IF_ERROR(staged.publish());
//
// A process killed at any moment leaves the old directory or the new one, whole:
// - Nothing stands at the final path: rename().
// - A directory stands there (and `replace` is set): renameat2 with RENAME_EXCHANGE; the old
//   content, which then has the staged name, is removed.
// - The file system has no RENAME_EXCHANGE (NFS, some FUSE ones; found out by trying it on two
// empty
//   directories): the content lies in `.<final>.content-<pid>-<random>`, the final path is a
//   symbolic link to it, and replacing renames a new link over the old one. A plain directory that
//   stands at the final path there cannot be replaced in one step: FailedPrecondition, and the
//   caller is told to remove it.
// The final path may be a symbolic link of the user's: then the directory that it names is
// replaced, and the link stays. publish() flushes every file and directory to the disk first.
// The destructor removes what was not published, and so does an interrupt (base/interrupt.h), which
// finds publish() either before its exchange or behind it. create() makes missing parents and
// removes staging directories `.<final>.staged-<pid>-<random>` whose process is dead (no such pid,
// and no lock held on the directory, which another pid namespace would show).
class StagedDirectory {
 public:
  // Given a directory that would be replaced: whether it may be. A command that writes directories
  // names here what it knows as its own, as --force with a slip in the path ("-o ~") must not
  // remove what somebody else has put there.
  using MayReplace = std::function<Status(const std::filesystem::path& directory)>;

  // FailedPrecondition where something stands at the final path and `replace` is not set, or where
  // it is not a directory; and what `may_replace` says. It is asked again just before the exchange,
  // and never of a directory that holds no file. Without it only such a directory is replaced.
  static Result<StagedDirectory> create(const std::filesystem::path& final_path, bool replace,
                                        MayReplace may_replace = {});
  StagedDirectory(StagedDirectory&&) noexcept;
  StagedDirectory& operator=(StagedDirectory&&) noexcept;
  ~StagedDirectory();
  const std::filesystem::path& path() const { return staged_; }
  Status publish();

 private:
  StagedDirectory() = default;
  void discard();
  // `occupied`: whether something stood there when it was asked whether it may be replaced. After
  // it staged_ is what was replaced, or empty.
  Status put_in_place(bool occupied);
  std::filesystem::path final_, staged_;
  bool replace_ = false;
  MayReplace may_replace_;
  int lock_ = -1;
  RemovedOnInterrupt on_interrupt_;
};

// Whether every file of `directory`, at any depth, is one that `is_own` knows by its path relative
// to it: FailedPrecondition names the first other one, which is "not part of `what`". Anything that
// is neither file nor directory is a file here. For StagedDirectory::MayReplace.
Status holds_only(const std::filesystem::path& directory, std::string_view what,
                  const std::function<bool(const std::string& relative)>& is_own);

// Makes StagedDirectory act as on a file system without RENAME_EXCHANGE. For tests.
void pretend_no_rename_exchange(bool pretend);

}  // namespace tenonnx
