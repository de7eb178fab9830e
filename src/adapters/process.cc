// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/interrupt.h"
#include "base/status.h"

namespace tenonnx {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kGrace{2000};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

std::string reason(int error) { return std::generic_category().message(error); }

// Between fork and exec only what is safe after a fork of a process with threads. Reports errno
// through `report` where the program did not start.
[[noreturn]] void become(char* const* arguments, int null, int log, int report, pid_t parent) {
  ::setpgid(0, 0);
  // The group must not outlive its parent; that it has gone already shows in the parent's id.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  if (::dup2(null, STDIN_FILENO) >= 0 && ::dup2(log, STDOUT_FILENO) >= 0 &&
      ::dup2(log, STDERR_FILENO) >= 0)
    ::execvp(arguments[0], arguments);
  const int error = errno;
  [[maybe_unused]] const auto written = ::write(report, &error, sizeof error);
  ::_exit(127);
}

// The pid's end without taking it from the process table, so that its group stays ours to signal.
bool has_ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == pid;
}

bool ends_before(pid_t pid, Clock::time_point limit) {
  // Short commands should not wait long for their end to be noticed, long ones cost nothing.
  milliseconds pause{1};
  while (!has_ended(pid)) {
    if (Clock::now() >= limit) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, milliseconds{20});
  }
  return true;
}

}  // namespace

std::string ProcessEnd::text() const {
  if (timed_out) return "time limit";
  if (signal != 0) return fmt::format("signal {} ({})", signal, ::strsignal(signal));
  return fmt::format("exit code {}", exit_code);
}

Result<ProcessEnd> run_process(const std::vector<std::string>& arguments,
                               const std::filesystem::path& log, milliseconds time_limit) {
  if (arguments.empty()) return InvalidArgument("no program to run");
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Io("cannot make a pipe: {}", reason(errno));
  Descriptor read_end(ends[0]), write_end(ends[1]);
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Descriptor log_file(
      ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (null.get() < 0) return Io("cannot open /dev/null: {}", reason(errno));
  if (log_file.get() < 0) return Io("cannot write '{}': {}", log.string(), reason(errno));

  const pid_t parent = ::getpid();
  auto hold = hold_interrupt();  // a child is registered or not yet there
  const pid_t pid = ::fork();
  if (pid < 0) return Io("cannot start '{}': {}", arguments[0], reason(errno));
  if (pid == 0) become(argv.data(), null.get(), log_file.get(), write_end.get(), parent);
  ::setpgid(pid, pid);  // in both, so that the group exists whoever comes first
  EndedOnInterrupt on_interrupt(pid);
  hold.unlock();
  write_end.reset();
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(read_end.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    on_interrupt.reset();
    ::waitpid(pid, nullptr, 0);
    if (error == ENOENT)
      return NotFound("there is no program '{}'{}", arguments[0],
                      arguments[0].find('/') == std::string::npos ? " in PATH" : "");
    return Io("cannot start '{}': {}", arguments[0], reason(error));
  }

  ProcessEnd end;
  const auto begin = Clock::now();
  if (!ends_before(pid, begin + time_limit)) {
    end.timed_out = true;
    ::kill(-pid, SIGTERM);
    ends_before(pid, Clock::now() + kGrace);
    ::kill(-pid, SIGKILL);  // those of the group that are left, the leader or not
  }
  on_interrupt.reset();  // before its id may be another's
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return Io("cannot learn how '{}' ended: {}", arguments[0], reason(errno));
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

}  // namespace tenonnx
