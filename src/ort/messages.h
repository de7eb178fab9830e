// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What ONNX Runtime and its providers log. A provider says why it took nothing in the log alone;
// the session's own error is that nodes would fall back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenonnx {

// Collects the warnings and errors of the process, of every thread, while it lives: those of a
// session that another thread creates at the same time are among them. Thread-safe.
class RuntimeMessages {
 public:
  RuntimeMessages();
  ~RuntimeMessages();
  RuntimeMessages(const RuntimeMessages&) = delete;
  RuntimeMessages& operator=(const RuntimeMessages&) = delete;
  // In their order; at most kMost, the first of them.
  std::vector<std::string> take();
  static constexpr std::size_t kMost = 4096;  // a detector's 1,000 nodes may each be refused

 private:
  friend void deliver_runtime_message(std::string_view message);
  std::vector<std::string> messages_;
};

// For the environment's logger.
void deliver_runtime_message(std::string_view message);

}  // namespace tenonnx
