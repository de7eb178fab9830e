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

int check_output(int exit_code) {
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !failed_before) return exit_code;
  const int reason = errno;
  try {
    fmt::print(stderr, "tenonnx: error: the results cannot be written to standard output: {}\n",
               failed_before ? "an earlier write failed" : std::generic_category().message(reason));
  } catch (const std::exception&) {  // standard error is no better
  }
  return kExitBadInput;
}

}  // namespace tenonnx::cli
