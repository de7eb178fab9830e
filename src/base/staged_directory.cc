// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/staging.h"
#include "base/status.h"

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

std::atomic<bool> g_no_exchange = false;

std::string prefix_of(const fs::path& final_path, std::string_view kind) {
  return fmt::format(".{}.{}-", final_path.filename().string(), kind);
}

// True where the link at `final_path` is one that publish() made.
bool is_own_link(const fs::path& final_path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(final_path, error);
  return !error && target.string().starts_with(prefix_of(final_path, "content"));
}

int exchange(const fs::path& a, const fs::path& b) {
  if (g_no_exchange) {
    errno = EINVAL;
    return -1;
  }
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
}

// Whether the file system of `parent` can exchange two directories.
Result<bool> can_exchange(const fs::path& final_path) {
  const std::string stem = prefix_of(final_path, "staged") + random_suffix();
  const fs::path a = final_path.parent_path() / (stem + "a");
  const fs::path b = final_path.parent_path() / (stem + "b");
  std::error_code error;
  if (!fs::create_directory(a, error) || !fs::create_directory(b, error)) {
    fs::remove(a, error);
    return Io("cannot make a directory in '{}': {}", final_path.parent_path().string(),
              error.message());
  }
  const int result = exchange(a, b);
  const int reason = errno;
  fs::remove(a, error);
  fs::remove(b, error);
  if (result == 0) return true;
  if (reason == EINVAL || reason == ENOSYS || reason == EOPNOTSUPP) return false;
  return Io("cannot exchange two directories in '{}': {}", final_path.parent_path().string(),
            std::generic_category().message(reason));
}

bool process_lives(std::string_view name_after_prefix) {
  int pid = 0;
  const char* end = name_after_prefix.data() + name_after_prefix.size();
  const auto [rest, error] = std::from_chars(name_after_prefix.data(), end, pid);
  // A name that is not ours is left alone.
  if (error != std::errc() || rest == end || *rest != '-' || pid <= 0) return true;
  return ::kill(pid, 0) == 0 || errno != ESRCH;
}

// Another pid namespace (a container that shares the directory) shows no such pid, but the lock.
bool is_locked(const fs::path& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return locked;
}

void remove_stale(const fs::path& final_path) {
  std::error_code error;
  const fs::path current = fs::read_symlink(final_path, error);
  const std::string staged = prefix_of(final_path, "staged");
  const std::string content = prefix_of(final_path, "content");
  std::vector<fs::path> stale;
  for (fs::directory_iterator it(final_path.parent_path(), error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name == current.string()) continue;
    // Content that the link no longer names is nobody's, even while its maker lives on; the lock
    // protects what is just being put in place.
    const bool abandoned =
        name.starts_with(content) ||
        (name.starts_with(staged) && !process_lives(std::string_view(name).substr(staged.size())));
    if (!abandoned || is_locked(it->path())) continue;
    stale.push_back(it->path());
  }
  for (const fs::path& path : stale) fs::remove_all(path, error);
}

Status check_replaceable(const fs::path& directory,
                         const StagedDirectory::MayReplace& may_replace) {
  const auto no_file = [](const std::string&) { return false; };
  const Status empty = holds_only(directory, "anything that may be replaced", no_file);
  return empty.ok() || !may_replace ? empty : may_replace(directory);
}

Status sync_tree(const fs::path& directory) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    const fs::file_status status = it->symlink_status(error);
    if (error) break;
    if (fs::is_regular_file(status) || fs::is_directory(status))
      TENONNX_RETURN_IF_ERROR(sync_path(it->path()));
  }
  if (error) return Io("cannot read '{}': {}", directory.string(), error.message());
  return sync_path(directory);
}

// Points the link at `final_path` to `content` (a name in the same directory), in one step.
Status switch_link(const fs::path& final_path, const std::string& content) {
  const fs::path link =
      final_path.parent_path() / (prefix_of(final_path, "staged") + random_suffix());
  std::error_code error;
  fs::create_directory_symlink(content, link, error);
  if (!error) fs::rename(link, final_path, error);
  if (error) {
    const std::string reason = error.message();
    fs::remove(link, error);
    return Io(
        "cannot put '{}' in place: the file system can neither exchange two directories "
        "nor switch a symbolic link ({}); write to another file system",
        final_path.string(), reason);
  }
  return {};
}

}  // namespace

Result<Staging> open_staging(const fs::path& final_path, const fs::path& named) {
  remove_stale(final_path);
  std::error_code error;
  Staging staging;
  const fs::path beside =
      final_path.parent_path() / (prefix_of(final_path, "staged") + random_suffix());
  const auto hold = hold_interrupt();
  if (!fs::create_directory(beside, error))
    return Io("cannot make '{}': nothing can be written into '{}' ({}); name another place",
              final_path.string(), final_path.parent_path().string(), error.message());
  staging.path = beside;
  staging.on_interrupt = RemovedOnInterrupt(beside, named);
  staging.lock = ::open(beside.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (staging.lock >= 0) ::flock(staging.lock, LOCK_EX | LOCK_NB);
  return staging;
}

void close_staging(Staging& staging) {
  std::error_code error;
  if (!staging.path.empty()) fs::remove_all(staging.path, error);
  if (staging.lock >= 0) ::close(staging.lock);
  staging = {};
}

void pretend_no_rename_exchange(bool pretend) { g_no_exchange = pretend; }

Status holds_only(const fs::path& directory, std::string_view what,
                  const std::function<bool(const std::string& relative)>& is_own) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    const fs::file_status status = it->symlink_status(error);
    if (error) break;
    if (fs::is_directory(status)) continue;
    const std::string relative = it->path().lexically_relative(directory).string();
    if (!is_own(relative))
      return FailedPrecondition(
          "'{}' is not replaced: it holds '{}', which is not part of {}; move it away, or name "
          "another place",
          directory.string(), relative, what);
  }
  if (error) return Io("cannot read '{}': {}", directory.string(), error.message());
  return {};
}

Result<StagedDirectory> StagedDirectory::create(const fs::path& final_path, bool replace,
                                                MayReplace may_replace) {
  std::error_code error;
  fs::path path = fs::absolute(final_path, error).lexically_normal();
  if (error || final_path.empty())
    return InvalidArgument("'{}' is not a path", final_path.string());
  if (!path.has_filename()) path = path.parent_path();
  if (path == path.root_path()) return InvalidArgument("'/' cannot be written as a whole");
  if (fs::is_symlink(path, error) && !is_own_link(path)) {
    path = fs::weakly_canonical(path, error);
    if (error) return Io("cannot follow '{}': {}", final_path.string(), error.message());
  }
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) || fs::is_symlink(path, error)) {
    if (fs::exists(status) && !fs::is_directory(status))
      return FailedPrecondition("'{}' exists and is not a directory; name another place",
                                final_path.string());
    if (!replace)
      return FailedPrecondition(
          "'{}' exists; remove it, name another place, or ask for it to be replaced (--force)",
          final_path.string());
    if (fs::exists(status)) TENONNX_RETURN_IF_ERROR(check_replaceable(path, may_replace));
  }
  fs::create_directories(path.parent_path(), error);
  if (error) return Io("cannot make '{}': {}", path.parent_path().string(), error.message());

  StagedDirectory staged;
  staged.final_ = path;
  staged.replace_ = replace;
  staged.may_replace_ = std::move(may_replace);
  TENONNX_ASSIGN_OR_RETURN(Staging staging, open_staging(path, final_path));
  staged.staged_ = staging.path;
  staged.lock_ = staging.lock;
  staged.on_interrupt_ = std::move(staging.on_interrupt);
  return staged;
}

Status StagedDirectory::publish() {
  if (staged_.empty()) return FailedPrecondition("the directory has already been published");
  TENONNX_RETURN_IF_ERROR(sync_tree(staged_));
  std::error_code error;
  const bool occupied = fs::exists(fs::symlink_status(final_, error));
  if (occupied && !replace_)
    return FailedPrecondition("'{}' appeared meanwhile; it is left as it is", final_.string());
  // What was put there while this one was being filled counts as well.
  if (fs::is_directory(final_, error))
    TENONNX_RETURN_IF_ERROR(check_replaceable(final_, may_replace_));
  TENONNX_RETURN_IF_ERROR(put_in_place(occupied));
  const Status synced = sync_path(final_.parent_path());
  // The next create() removes it: a power cut now may bring the old directory back.
  if (!synced.ok()) staged_.clear();
  discard();
  return synced;
}

Status StagedDirectory::put_in_place(bool occupied) {
  const auto hold = hold_interrupt();
  std::error_code error;
  const bool own_link = is_own_link(final_);
  TENONNX_ASSIGN_OR_RETURN(const bool exchanges, can_exchange(final_));

  if (own_link || (!occupied && !exchanges)) {
    const std::string content = prefix_of(final_, "content") + random_suffix();
    const fs::path old = own_link ? final_.parent_path() / fs::read_symlink(final_, error) : "";
    const fs::path filled = final_.parent_path() / content;
    fs::rename(staged_, filled, error);
    if (error) return Io("cannot put '{}' in place: {}", final_.string(), error.message());
    staged_ = filled;  // the destructor's business until the link stands
    const Status switched = switch_link(final_, content);
    if (!switched.ok()) {
      fs::remove_all(std::exchange(staged_, fs::path()), error);
      return switched;
    }
    staged_ = old;
  } else if (!occupied) {
    // RENAME_NOREPLACE: plain rename() would replace an empty directory that appeared meanwhile.
    if (::renameat2(AT_FDCWD, staged_.c_str(), AT_FDCWD, final_.c_str(), RENAME_NOREPLACE) != 0)
      return Io("cannot put '{}' in place: {}", final_.string(),
                std::generic_category().message(errno));
    staged_.clear();
  } else if (exchanges) {
    if (exchange(staged_, final_) != 0)
      return Io("cannot put '{}' in place: {}", final_.string(),
                std::generic_category().message(errno));
  } else {
    return FailedPrecondition(
        "'{}' cannot be replaced in one step: its file system has no RENAME_EXCHANGE and it is a "
        "plain directory; remove it first, or write to another file system",
        final_.string());
  }
  on_interrupt_.result_stands(staged_);
  return {};
}

void StagedDirectory::discard() {
  Staging staging{std::exchange(staged_, fs::path()), std::exchange(lock_, -1),
                  std::move(on_interrupt_)};
  close_staging(staging);
}

StagedDirectory::StagedDirectory(StagedDirectory&& other) noexcept
    : final_(std::move(other.final_)),
      staged_(std::exchange(other.staged_, fs::path())),
      replace_(other.replace_),
      may_replace_(std::move(other.may_replace_)),
      lock_(std::exchange(other.lock_, -1)),
      on_interrupt_(std::move(other.on_interrupt_)) {}

StagedDirectory& StagedDirectory::operator=(StagedDirectory&& other) noexcept {
  if (this != &other) {
    discard();
    final_ = std::move(other.final_);
    staged_ = std::exchange(other.staged_, fs::path());
    replace_ = other.replace_;
    may_replace_ = std::move(other.may_replace_);
    lock_ = std::exchange(other.lock_, -1);
    on_interrupt_ = std::move(other.on_interrupt_);
  }
  return *this;
}

StagedDirectory::~StagedDirectory() { discard(); }

}  // namespace tenonnx
