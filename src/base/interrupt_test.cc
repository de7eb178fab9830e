// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <thread>

#include "base/files.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;

class Interrupt : public ::testing::Test {
 protected:
  static void write(const fs::path& path, const std::string& text = "text") {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_)) names.insert(entry.path().filename());
    return names;
  }
  // Of the 8 files that put() writes; "mixed" where they differ.
  std::string content() const {
    std::string all;
    for (int i = 0; i < 8; ++i) {
      const auto text = read_file(root_ / "out" / std::to_string(i));
      if (!text.ok() || (i > 0 && *text != all)) return "mixed";
      all = *text;
    }
    return all;
  }
  static std::string clean_up() {
    InterruptCleanUp clean_up;
    std::string outcome = clean_up.outcome();
    clean_up.run();
    return outcome;
  }
  // Not a TemporaryDirectory, which is registered itself.
  const fs::path root_ = [] {
    std::string name = (fs::temp_directory_path() / "interrupt_test-XXXXXX").string();
    return fs::path(::mkdtemp(name.data()));
  }();
  ~Interrupt() override { fs::remove_all(root_); }
};

TEST_F(Interrupt, RemovesWhatIsRegisteredAndNothingElse) {
  write(root_ / "kept/file");
  write(root_ / "given_up/file");
  write(root_ / "moved/deep/file");
  write(root_ / "file");
  fs::create_directory_symlink(root_ / "kept", root_ / "link");
  RemovedOnInterrupt given_up(root_ / "given_up");
  given_up.reset();
  RemovedOnInterrupt first(root_ / "moved"), file(root_ / "file"), link(root_ / "link");
  const RemovedOnInterrupt second = std::move(first);
  first.reset();  // of what was moved away: nothing
  const RemovedOnInterrupt never_made(root_ / "never_made");
  EXPECT_EQ(clean_up(), "");
  EXPECT_EQ(names(), (std::set<std::string>{"given_up", "kept"}));
  EXPECT_TRUE(fs::exists(root_ / "kept/file")) << "removed through the link";
}

TEST_F(Interrupt, RemovesADirectoryThatIsBeingFilled) {
  const fs::path path = root_ / "filled";
  write(path / "file");
  const RemovedOnInterrupt registered(path);
  std::atomic<bool> stop = false;
  std::atomic<int> written = 0;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      std::ofstream file(path / std::to_string(i));
      written += file.good() ? 1 : 0;
    }
  });
  while (written < 100) std::this_thread::yield();
  clean_up();
  stop = true;
  writer.join();
  EXPECT_EQ(names(), std::set<std::string>{});
}

TEST_F(Interrupt, StagedDirectoryGoesAndWhatStandsStays) {
  write(root_ / "out/old", "old");
  auto staged =
      StagedDirectory::create(root_ / "out", true, [](const fs::path&) { return Status(); });
  ASSERT_TRUE(staged.ok()) << staged.status().message();
  write(staged->path() / "new");
  const auto file = AtomicFile::create(root_ / "beside");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(clean_up(),
            "'" + (root_ / "out").string() + "' was not replaced, what stands there is unchanged");
  EXPECT_EQ(names(), std::set<std::string>{"out"});
  EXPECT_TRUE(fs::exists(root_ / "out/old"));
}

// The clean-up comes from another thread at any moment of publish(): what stands is the old
// directory or the new one, it is said truly, and there is nothing beside.
class InterruptedPublish : public Interrupt, public ::testing::WithParamInterface<bool> {
 protected:
  InterruptedPublish() { pretend_no_rename_exchange(GetParam()); }
  ~InterruptedPublish() override { pretend_no_rename_exchange(false); }
  Status put(const std::string& text) const {
    auto staged =
        StagedDirectory::create(root_ / "out", true, [](const fs::path&) { return Status(); });
    if (!staged.ok()) return staged.status();
    for (int i = 0; i < 8; ++i) std::ofstream(staged->path() / std::to_string(i)) << text;
    return staged->publish();
  }
};

TEST_P(InterruptedPublish, IsBeforeOrBehindTheExchange) {
  ASSERT_TRUE(put("old").ok());
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(put("old").ok());
  const auto whole = std::chrono::steady_clock::now() - begin;
  int before = 0, behind = 0;
  constexpr int kMoments = 40;
  for (int i = 0; i < kMoments; ++i) {
    // In a child: the clean-up ends with the process, while publish() waits for it.
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      std::thread publisher([&] { (void)put("new"); });
      if (i + 1 == kMoments) publisher.join();
      std::this_thread::sleep_for(whole * 2 * i / kMoments);
      InterruptCleanUp clean_up;
      const std::string outcome = clean_up.outcome();
      clean_up.run();
      [[maybe_unused]] const auto n = ::write(ends[1], outcome.data(), outcome.size());
      ::_exit(0);
    }
    ::close(ends[1]);
    char text[512] = {};
    const auto got = ::read(ends[0], text, sizeof text - 1);
    ::close(ends[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    const std::string outcome(text, got > 0 ? static_cast<std::size_t>(got) : 0);
    const std::string now = content();
    ASSERT_TRUE(now == "old" || now == "new") << now;
    if (!outcome.empty()) {
      EXPECT_EQ(now, outcome.ends_with("is unchanged") ? "old" : "new") << outcome;
    }
    EXPECT_EQ(names().size(), GetParam() ? 2U : 1U)
        << "left behind, moment " << i << ": " << ::testing::PrintToString(names());
    (now == "old" ? before : behind) += 1;
    ASSERT_TRUE(now == "old" || put("old").ok());
  }
  EXPECT_GT(before, 0) << "all moments are behind the exchange";
  EXPECT_GT(behind, 0) << "all moments are before the exchange";
}

INSTANTIATE_TEST_SUITE_P(ExchangeOrLink, InterruptedPublish, ::testing::Bool());

TEST_F(Interrupt, WaitsForTheHold) {
  std::atomic<bool> cleaned = false;
  std::thread cleaner;
  {
    const auto hold = hold_interrupt();
    write(root_ / "made/file");
    cleaner = std::thread([&] {
      clean_up();
      cleaned = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(cleaned);
    EXPECT_TRUE(fs::exists(root_ / "made/file"));
  }
  cleaner.join();
}

TEST_F(Interrupt, EndsAGroupWhoseLeaderDoesNotListen) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t leader = ::fork();
  if (leader == 0) {
    ::setpgid(0, 0);
    ::signal(SIGTERM, SIG_IGN);
    ::close(ends[0]);
    // Both hold the pipe's other end.
    if (::fork() > 0) [[maybe_unused]]
      const auto ready = ::write(ends[1], "r", 1);
    for (;;) ::pause();
  }
  ::setpgid(leader, leader);
  ::close(ends[1]);
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  EndedOnInterrupt registered(leader);
  clean_up();
  EXPECT_EQ(::read(ends[0], &byte, 1), 0) << "somebody of the group still has it";
  ::close(ends[0]);
  registered.reset();
  int status = 0;
  ASSERT_EQ(::waitpid(leader, &status, 0), leader);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

}  // namespace
}  // namespace tenonnx
