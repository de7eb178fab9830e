// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "standard_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "command.h"

namespace tenonnx::cli {

void open_closed_streams() {
  // open() takes the lowest free descriptor, so that those below have to be in order first.
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // Standard error may be written: messages that nobody wants are no failure.
    const int mode = fd == STDIN_FILENO ? O_WRONLY : fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (::open("/dev/null", mode) < 0) return;
  }
}

namespace {
std::FILE* g_results = nullptr;
}  // namespace

void keep_output_for_results() {
  const int own = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (own < 0) return;
  const int mode = ::fcntl(own, F_GETFL) & O_ACCMODE;
  // A descriptor that cannot be written stays as it is, so that writing the results fails.
  std::FILE* file = mode == O_RDONLY ? nullptr : ::fdopen(own, "w");
  if (file == nullptr) {
    ::close(own);
    return;
  }
  if (::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    std::fclose(file);
    return;
  }
  g_results = file;
}

std::FILE* results() { return g_results != nullptr ? g_results : stdout; }

int check_output(int exit_code) {
  const bool failed_before = std::ferror(results()) != 0;
  if (std::fflush(results()) == 0 && !failed_before) return exit_code;
  const int reason = errno;
  try {
    refuse(fmt::format(
        "the results cannot be written to standard output: {}",
        failed_before ? "an earlier write failed" : std::generic_category().message(reason)));
  } catch (const std::exception&) {  // standard error is no better
  }
  return kExitBadInput;
}

}  // namespace tenonnx::cli
