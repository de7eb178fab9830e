// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace tenonnx {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kGrace{2000};  // as at the time limit of run_process()

constexpr int kAttempts = 100;  // of removing a directory; the second one has always been enough

struct Entry {
  std::uint64_t id;
  fs::path path, result;
  bool stands = false;
};

struct Registry {
  std::recursive_mutex mutex;
  std::uint64_t last_id = 0;
  std::vector<Entry> entries;
  std::vector<pid_t> groups;
};

// Never destroyed: threads may still work while the process ends.
Registry& registry() {
  static Registry& registry = *new Registry;
  return registry;
}

fs::path absolute_path(const fs::path& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute;
}

bool is_inside(const fs::path& path, const fs::path& directory) {
  const auto [end, ignored] =
      std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return end == directory.end() && path != directory;
}

// A group whose leader is a zombie keeps its id until wait, which nobody reaches meanwhile.
bool leader_lives(pid_t group) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(group), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

void end_groups(const std::vector<pid_t>& groups) {
  for (const pid_t group : groups) ::kill(-group, SIGTERM);
  const auto limit = std::chrono::steady_clock::now() + kGrace;
  while (std::any_of(groups.begin(), groups.end(), leader_lives) &&
         std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (const pid_t group : groups) ::kill(-group, SIGKILL);  // leader or not
}

// Other threads go on: a file that appears behind the removal's back would keep the directory, and
// who makes a directory with its parents would bring it back. So it goes under another name, and an
// empty file stands in its place until the end. Both names begin as that of a staged directory
// does, so that what a second interrupt leaves goes with the next run.
void remove_behind_file(const fs::path& path) {
  fs::path away = path;
  away += ".removed";
  const auto make_file = [](const fs::path& file) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) ::close(fd);
    return fd >= 0;
  };
  std::error_code error;
  if (!make_file(away) ||
      ::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, away.c_str(), RENAME_EXCHANGE) != 0) {
    ::unlink(away.c_str());
    fs::rename(path, away, error);
    make_file(path);
  }
  // A file that was being opened in it meanwhile makes the removal end with "not empty"; nobody
  // else finds the directory any more.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    error.clear();
    fs::remove_all(away, error);
    if (!error && !fs::exists(fs::symlink_status(away, error))) return;
  }
}

}  // namespace

std::unique_lock<std::recursive_mutex> hold_interrupt() {
  return std::unique_lock(registry().mutex);
}

RemovedOnInterrupt::RemovedOnInterrupt(fs::path path, fs::path result) {
  const auto hold = hold_interrupt();
  Registry& all = registry();
  // The working directory may be another one at the interrupt.
  all.entries.push_back({all.last_id + 1, absolute_path(path), std::move(result)});
  id_ = ++all.last_id;
}

RemovedOnInterrupt::RemovedOnInterrupt(RemovedOnInterrupt&& other) noexcept
    : id_(std::exchange(other.id_, 0)) {}

RemovedOnInterrupt& RemovedOnInterrupt::operator=(RemovedOnInterrupt&& other) noexcept {
  if (this != &other) {
    reset();
    id_ = std::exchange(other.id_, 0);
  }
  return *this;
}

void RemovedOnInterrupt::result_stands(fs::path left) {
  if (id_ == 0) return;
  const auto hold = hold_interrupt();
  for (Entry& entry : registry().entries) {
    if (entry.id != id_) continue;
    entry.path = left.empty() ? fs::path() : absolute_path(left);
    entry.stands = true;
  }
}

void RemovedOnInterrupt::reset() {
  if (id_ == 0) return;
  const auto hold = hold_interrupt();
  std::erase_if(registry().entries, [&](const Entry& entry) { return entry.id == id_; });
  id_ = 0;
}

EndedOnInterrupt::EndedOnInterrupt(pid_t group) : group_(group) {
  const auto hold = hold_interrupt();
  registry().groups.push_back(group);
}

void EndedOnInterrupt::reset() {
  if (group_ == 0) return;
  const auto hold = hold_interrupt();
  std::erase(registry().groups, std::exchange(group_, 0));
}

InterruptCleanUp::InterruptCleanUp() : hold_(hold_interrupt()) {}

std::string InterruptCleanUp::outcome() const {
  std::string text;
  const std::vector<Entry>& entries = registry().entries;
  for (const Entry& entry : entries) {
    // What is made inside something that goes is a part of it.
    const fs::path result = absolute_path(entry.result);
    const auto holds_it = [&](const Entry& other) {
      return !other.path.empty() && is_inside(result, other.path);
    };
    if (entry.result.empty() || std::any_of(entries.begin(), entries.end(), holds_it)) continue;
    if (!text.empty()) text += "; ";
    std::error_code error;
    const bool replaces = !entry.stands && fs::exists(fs::symlink_status(result, error));
    text += "'" + entry.result.string() +
            (entry.stands ? "' was written"
             : replaces   ? "' was not replaced, what stands there is unchanged"
                          : "' was not written");
  }
  return text;
}

void InterruptCleanUp::run() {
  end_groups(registry().groups);
  const std::vector<Entry>& entries = registry().entries;
  std::error_code error;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    if (fs::is_directory(fs::symlink_status(entry->path, error))) remove_behind_file(entry->path);
  for (const Entry& entry : entries)
    if (!entry.path.empty()) fs::remove_all(entry.path, error);
}

}  // namespace tenonnx
