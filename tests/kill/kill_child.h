// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A tenonnx of our own to be killed.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace tenonnx {

inline int number_of(const char* variable, int fallback) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : fallback;
}

// Starts the built `tenonnx` with its standard output in `out`, standard error in `messages`
// (empty: ours), and `variables` ("NAME=value") set besides.
inline pid_t start_tenonnx(std::vector<std::string> args,
                           const std::filesystem::path& out = "/dev/null",
                           const std::filesystem::path& messages = {},
                           std::vector<std::string> variables = {}) {
  const std::string tool = TENONNX_TEST_BINARY_DIR "/bin/tenonnx";
  args.insert(args.begin(), tool);
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (!messages.empty())
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
  std::vector<char*> environment;  // of two of the same name the first counts
  for (std::string& variable : variables) environment.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.push_back(*variable);
  environment.push_back(nullptr);
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, tool.c_str(), &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(error, 0) << "cannot start " << tool;
  return pid;
}

// The exit code, or -signal.
inline int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace tenonnx
