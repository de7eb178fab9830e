// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A child process with a time limit.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tenonnx/base.h"

namespace tenonnx {

struct ProcessEnd {
  bool timed_out = false;
  int exit_code = -1;        // where it ended by itself
  int signal = 0;            // that ended it, else 0
  std::string text() const;  // "exit code 3", "signal 11 (Segmentation fault)", "time limit"
};

// Runs a program (looked up in PATH) in a process group of its own, with standard input from
// /dev/null, standard output and error into `log` (which is made anew), and waits for it. At the
// time limit the group gets SIGTERM, 2 s later SIGKILL. The child is ended when the calling thread
// ends, its group where the process is interrupted (base/interrupt.h). NotFound where there is no
// such program, Io with the operating system's reason.
Result<ProcessEnd> run_process(const std::vector<std::string>& arguments,
                               const std::filesystem::path& log,
                               std::chrono::milliseconds time_limit);

}  // namespace tenonnx
