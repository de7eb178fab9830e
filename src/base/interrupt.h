// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What has to go when a signal interrupts the process: paths that are not finished, and process
// groups that were started. The library only keeps the list, which costs a mutex; it installs no
// handler. A program that wants to clean up (cli/interrupt.cc) makes an InterruptCleanUp in a
// thread that waits for the signal.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace tenonnx {

// While it is held, an interrupt waits. Around what must be seen as one step: a path made and
// registered, an exchange and what is said of it. Whoever asks during the clean-up waits for the
// end of the process, so that no thread makes anything new or reports an error that is none.
[[nodiscard]] std::unique_lock<std::recursive_mutex> hold_interrupt();

// A file or directory that goes where the process is interrupted while this object lives. Make it
// under the same hold_interrupt() as the path. The destructor removes nothing.
class RemovedOnInterrupt {
 public:
  RemovedOnInterrupt() = default;
  // `result` is what the user has asked for and the path becomes, as named by the user; empty where
  // the path is nobody's result.
  explicit RemovedOnInterrupt(std::filesystem::path path, std::filesystem::path result = {});
  RemovedOnInterrupt(RemovedOnInterrupt&& other) noexcept;
  RemovedOnInterrupt& operator=(RemovedOnInterrupt&& other) noexcept;
  ~RemovedOnInterrupt() { reset(); }
  // The result stands, and `left` (what it replaced, say) is what has to go; empty: nothing.
  void result_stands(std::filesystem::path left);
  void reset();

 private:
  std::uint64_t id_ = 0;  // 0: nothing registered
};

// A process group that is ended where the process is interrupted while this object lives. Made
// under the same hold_interrupt() as the fork; reset before the leader's id is given back by wait.
class EndedOnInterrupt {
 public:
  explicit EndedOnInterrupt(pid_t group);
  EndedOnInterrupt(const EndedOnInterrupt&) = delete;
  EndedOnInterrupt& operator=(const EndedOnInterrupt&) = delete;
  ~EndedOnInterrupt() { reset(); }
  void reset();

 private:
  pid_t group_;
};

// Takes the hold and keeps it as long as it lives.
class InterruptCleanUp {
 public:
  InterruptCleanUp();
  // "'p' was not written", "'p' was written", several joined by "; ", or "".
  std::string outcome() const;
  // Ends the groups (SIGTERM, 2 s later SIGKILL), then removes the paths.
  void run();

 private:
  std::unique_lock<std::recursive_mutex> hold_;
};

}  // namespace tenonnx
