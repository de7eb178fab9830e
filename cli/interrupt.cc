// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "interrupt.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <system_error>
#include <thread>

#include "base/interrupt.h"

namespace tenonnx::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
// timeout(1) signals its child and then the child's group, a closing terminal and its shell both
// send SIGHUP: only what comes later than this was meant as a second one.
constexpr long kSameMilliseconds = 500;

const char* name_of(int signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : "SIGHUP";
}

long milliseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<long>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// Only what is safe in a signal handler.
[[noreturn]] void die_of(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);  // the first process of a container does not die of signals
}

volatile long g_first = 0;  // set before the handler is

// In the thread that cleans up, and in no other.
void on_second(int signal) {
  if (milliseconds_now() - g_first >= kSameMilliseconds) die_of(signal);
}

void say(int signal, const std::string& outcome) {
  std::string line = fmt::format("tenonnx: interrupted ({})", name_of(signal));
  if (!outcome.empty()) line += "; " + outcome;
  // Behind the "^C" of the terminal, or a line of progress that is still open.
  if (::isatty(STDERR_FILENO) != 0) line.insert(line.begin(), '\n');
  line += '\n';
  // Not through stderr, whose lock another thread may hold; and a reader that has stopped reading
  // must not keep the clean-up waiting.
  pollfd ready{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&ready, 1, 0) != 1) return;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

void wait_for(sigset_t signals) {
  int signal = 0;
  while (::sigwait(&signals, &signal) != 0) {
  }
  g_first = milliseconds_now();
  // `tenonnx ... 2>&1 | tee log`: Ctrl-C ends tee as well, and a thread that reports progress would
  // end the process in the middle of the clean-up.
  ::signal(SIGPIPE, SIG_IGN);
  struct sigaction second {};
  second.sa_handler = on_second;
  for (const int one : kSignals)
    if (::sigismember(&signals, one) == 1) ::sigaction(one, &second, nullptr);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // in this thread alone
  try {
    InterruptCleanUp clean_up;
    say(signal, clean_up.outcome());
    clean_up.run();
    die_of(signal);  // with the hold: no other thread returns from main() before
  } catch (...) {    // out of memory
  }
  die_of(signal);
}

}  // namespace

void wait_for_interrupts() {
  sigset_t blocked, signals;
  ::sigemptyset(&signals);
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  bool any = false;
  for (const int one : kSignals) {
    struct sigaction now {};
    if (::sigaction(one, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) continue;
    if (::sigismember(&blocked, one) == 1) continue;
    ::sigaddset(&signals, one);
    any = true;
  }
  if (!any) return;
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    std::thread(wait_for, signals).detach();
  } catch (const std::system_error&) {  // no thread to be had: signals act as they always do
    ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  }
}

void end_interrupts() { hold_interrupt().release(); }

}  // namespace tenonnx::cli
