// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// `tenonnx deploy` interrupted by SIGINT, SIGTERM and SIGHUP at several moments: it dies of that
// signal, says so, and leaves nothing beside -o and nothing in TMPDIR; a package that stood there
// stands as before.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "kill_child.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kModel = TENONNX_TEST_SOURCE_DIR "/examples/models/shapes_deimv2.onnx";

class InterruptedDeploy : public ::testing::Test {
 protected:
  InterruptedDeploy() {
    fs::create_directory(out_);
    fs::create_directory(scratch_);
  }
  pid_t start(std::vector<std::string> args) const {
    return start_tenonnx(std::move(args), "/dev/null", messages_, {"TMPDIR=" + scratch_.string()});
  }
  // --fuse-attention is what needs a temporary directory on the target cpu.
  pid_t start_deploy(const std::string& name) const {
    return start({"--quiet", "deploy", kModel, "--target", "cpu", "--fuse-attention", "--force",
                  "-o", (out_ / name).string()});
  }
  static std::set<std::string> names(const fs::path& directory) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory))
      names.insert(entry.path().filename());
    return names;
  }
  std::string said() const {
    const auto text = read_file(messages_);
    return text.ok() ? *text : "";
  }
  // What a command has begun to write there: before, there is nothing to clean up.
  static bool wait_for_entry(const fs::path& directory, const std::string& prefix) {
    for (int i = 0; i < 6000; ++i) {
      for (const std::string& entry : names(directory))
        if (entry.starts_with(prefix)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  TemporaryDirectory temporary_;
  const fs::path out_ = temporary_.path() / "out", scratch_ = temporary_.path() / "tmp",
                 messages_ = temporary_.path() / "messages";
};

using Names = std::set<std::string>;

TEST_F(InterruptedDeploy, LeavesNothingBehindAndSaysSo) {
  const auto begin = Clock::now();
  ASSERT_EQ(wait_for(start_deploy("p")), 3) << said();  // random inputs: INCONCLUSIVE
  const auto whole = std::chrono::duration<double>(Clock::now() - begin);
  ASSERT_EQ(names(scratch_), Names{});
  const auto stood = sha256_file(out_ / "p/manifest.json");
  ASSERT_TRUE(stood.ok());

  struct Case {
    int signal;
    const char* name;
    double moment;  // of the whole, from when it has begun to write
    const char* onto;
  };
  const Case cases[] = {{SIGINT, "SIGINT", 0.0, "q"},   {SIGINT, "SIGINT", 0.2, "p"},
                        {SIGINT, "SIGINT", 0.4, "q"},   {SIGINT, "SIGINT", 0.7, "p"},
                        {SIGTERM, "SIGTERM", 0.3, "p"}, {SIGHUP, "SIGHUP", 0.3, "q"}};
  int interrupted = 0;
  bool with_temporary = false;
  for (const Case& c : cases) {
    SCOPED_TRACE(
        fmt::format("{} at {} of {:.2f} s onto '{}'", c.name, c.moment, whole.count(), c.onto));
    const pid_t pid = start_deploy(c.onto);
    ASSERT_GT(pid, 0);
    ASSERT_TRUE(wait_for_entry(out_, fmt::format(".{}.staged-", c.onto)));
    std::this_thread::sleep_for(whole * c.moment);
    with_temporary |= !names(scratch_).empty();
    ::kill(pid, c.signal);  // our own child, not yet waited for: the id is still its own
    ::kill(pid, c.signal);  // as timeout(1) does: not a second wish
    const int code = wait_for(pid);
    ASSERT_TRUE(code == -c.signal || code == 3) << code << said();
    EXPECT_EQ(names(scratch_), Names{});
    if (code == 3) {  // the machine was faster than before
      fs::remove_all(out_ / "q");
      continue;
    }
    ++interrupted;
    const std::string outcome = said();
    const std::string was = (out_ / c.onto).string() + "' was ";
    if (outcome == fmt::format("tenonnx: interrupted ({}); '{}written\n", c.name, was)) {
      fs::remove_all(out_ / "q");
    } else {
      const char* now = c.onto == std::string("p") ? "not replaced, what stands there is unchanged"
                                                   : "not written";
      EXPECT_EQ(outcome, fmt::format("tenonnx: interrupted ({}); '{}{}\n", c.name, was, now));
    }
    EXPECT_EQ(names(out_), Names{"p"});
  }
  EXPECT_GE(interrupted, 4) << "the moments miss the command";
  EXPECT_TRUE(with_temporary) << "no moment had a temporary directory to be removed";
  const auto stands = sha256_file(out_ / "p/manifest.json");
  ASSERT_TRUE(stands.ok());
  EXPECT_EQ(*stands, *stood);  // the same deploy gives the same bytes
  // What it was proved with is inconclusive; 2 would be a damaged package.
  EXPECT_EQ(wait_for(start({"verify", (out_ / "p").string()})), 3) << said();
}

TEST_F(InterruptedDeploy, GoesOnWhereTheSignalIsIgnored) {
  ASSERT_NE(::signal(SIGINT, SIG_IGN), SIG_ERR);  // which the child inherits, as from nohup
  const pid_t pid = start_deploy("p");
  ::signal(SIGINT, SIG_DFL);
  ASSERT_TRUE(wait_for_entry(out_, ".p.staged-"));
  ::kill(pid, SIGINT);
  EXPECT_EQ(wait_for(pid), 3) << said();
  EXPECT_EQ(names(out_), Names{"p"});
  EXPECT_EQ(said(), "");
}

// A command of an exec: executor, and what that has started, in a group that no Ctrl-C reaches.
class InterruptedExec : public InterruptedDeploy {
 protected:
  void start_compare(const std::string& first, const std::string& then) {
    ASSERT_EQ(::pipe(ends_), 0);  // inherited by all of them: its end says that they are gone
    const std::string command =
        fmt::format("exec:sh -c '{}touch {}; {}'", first, (out_ / "runs").string(), then);
    pid_ = start(
        {"--quiet", "compare", kModel, "--on", command, "--random-inputs", "1", "--cache", "none"});
    ::close(ends_[1]);
    ASSERT_GT(pid_, 0);
    ASSERT_TRUE(wait_for_entry(out_, "runs")) << said();
  }
  void expect_all_gone() {
    char none = 0;
    EXPECT_EQ(::read(ends_[0], &none, 1), 0);
    ::close(ends_[0]);
  }
  int ends_[2] = {-1, -1};
  pid_t pid_ = -1;
};

TEST_F(InterruptedExec, ChildrenEndToo) {
  start_compare("", "sleep 60 & sleep 60; :");
  if (HasFatalFailure()) return;
  EXPECT_NE(names(scratch_), Names{}) << "no directory of the executor to be removed";
  ::kill(pid_, SIGINT);
  EXPECT_EQ(wait_for(pid_), -SIGINT);
  expect_all_gone();
  EXPECT_EQ(said(), "tenonnx: interrupted (SIGINT)\n");
  EXPECT_EQ(names(scratch_), Names{});
}

TEST_F(InterruptedExec, ASecondSignalEndsAtOnce) {
  start_compare("trap \"\" TERM; ", "while :; do sleep 0.1; done");
  if (HasFatalFailure()) return;
  const auto begin = Clock::now();
  ::kill(pid_, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));  // 500 ms are one wish
  ::kill(pid_, SIGINT);
  EXPECT_EQ(wait_for(pid_), -SIGINT);
  // The command is given 2 s to end by itself.
  EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(1800));
  expect_all_gone();
}

}  // namespace
}  // namespace tenonnx
