// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "base/files.h"
#include "base/temporary_directory.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Fills a directory with 8 files that all hold `text`.
void fill(const fs::path& dir, const std::string& text) {
  fs::create_directories(dir / "sub");
  for (int i = 0; i < 8; ++i) std::ofstream(dir / "sub" / std::to_string(i)) << text;
}

// The text that all 8 files hold; "" where there is no directory, "mixed" where they differ.
std::string content_of(const fs::path& dir) {
  std::string all;
  for (int i = 0; i < 8; ++i) {
    const auto text = read_file(dir / "sub" / std::to_string(i));
    if (!text.ok()) return i == 0 ? "" : "mixed";
    if (i > 0 && *text != all) return "mixed";
    all = *text;
  }
  return all;
}

std::vector<std::string> entries(const fs::path& dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir)) names.push_back(entry.path().filename());
  return names;
}

// What fill() writes.
Status is_filled(const fs::path& directory) {
  return holds_only(directory, "a filled directory",
                    [](const std::string& name) { return name.starts_with("sub/"); });
}

Status put(const fs::path& final_path, const std::string& text, bool replace) {
  auto staged = StagedDirectory::create(final_path, replace, is_filled);
  if (!staged.ok()) return staged.status();
  fill(staged->path(), text);
  return staged->publish();
}

// Both ways of replacing: with RENAME_EXCHANGE and with the link.
class StagedDirectoryTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { pretend_no_rename_exchange(GetParam()); }
  void TearDown() override { pretend_no_rename_exchange(false); }
  TemporaryDirectory dir_;
  fs::path final_ = dir_.path() / "parent" / "package";
};

TEST_P(StagedDirectoryTest, AppearsOnlyWhenPublished) {
  {
    auto staged = StagedDirectory::create(final_, false);
    ASSERT_TRUE(staged.ok());
    fill(staged->path(), "new");
    EXPECT_FALSE(fs::exists(final_));
    ASSERT_TRUE(staged->publish().ok());
    EXPECT_FALSE(staged->publish().ok());
  }
  EXPECT_EQ(content_of(final_), "new");
  EXPECT_THAT(entries(final_.parent_path()),
              SizeIs(GetParam() ? 2u : 1u));  // the link and its content
}

TEST_P(StagedDirectoryTest, NothingIsLeftOfWhatWasNotPublished) {
  {
    auto staged = StagedDirectory::create(final_, false);
    ASSERT_TRUE(staged.ok());
    fill(staged->path(), "new");
    StagedDirectory moved = std::move(*staged);
  }
  EXPECT_THAT(entries(final_.parent_path()), SizeIs(0u));
}

TEST_P(StagedDirectoryTest, ReplacesOnlyWhenAsked) {
  ASSERT_TRUE(put(final_, "old", false).ok());
  const Status refused = put(final_, "new", false);
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("--force"));
  EXPECT_EQ(content_of(final_), "old");
  ASSERT_TRUE(put(final_ / "", "new", true).ok());  // a trailing slash is no other place
  EXPECT_EQ(content_of(final_), "new");
  EXPECT_THAT(entries(final_.parent_path()), SizeIs(GetParam() ? 2u : 1u));
}

TEST_P(StagedDirectoryTest, AFileIsNeverReplaced) {
  fs::create_directories(final_.parent_path());
  std::ofstream(final_) << "precious";
  EXPECT_THAT(put(final_, "new", true).message(), HasSubstr("not a directory"));
  EXPECT_EQ(*read_file(final_), "precious");
}

TEST_P(StagedDirectoryTest, WhatIsNotOursIsNeverReplaced) {
  ASSERT_TRUE(put(final_, "old", false).ok());
  std::ofstream(final_ / "thesis.txt") << "precious";
  const Status refused = put(final_, "new", true);
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("holds 'thesis.txt', which is not part of a filled "
                                           "directory; move it away, or name another place"));
  EXPECT_EQ(*read_file(final_ / "thesis.txt"), "precious");
  EXPECT_EQ(content_of(final_), "old");
  fs::remove(final_ / "thesis.txt");
  fs::create_directory(final_ / "empty");
  EXPECT_TRUE(put(final_, "new", true).ok());
}

TEST_P(StagedDirectoryTest, WhatIsPutThereMeanwhileIsNeverReplaced) {
  ASSERT_TRUE(put(final_, "old", false).ok());
  auto staged = StagedDirectory::create(final_, true, is_filled);
  ASSERT_TRUE(staged.ok());
  fill(staged->path(), "new");
  std::ofstream(final_ / "thesis.txt") << "precious";
  EXPECT_THAT(staged->publish().message(), HasSubstr("holds 'thesis.txt'"));
  EXPECT_EQ(*read_file(final_ / "thesis.txt"), "precious");
}

TEST_P(StagedDirectoryTest, WithoutARuleOnlyAnEmptyDirectoryIsReplaced) {
  fs::create_directories(final_);
  auto refused = StagedDirectory::create(final_, true);
  EXPECT_TRUE(refused.ok());
  std::ofstream(final_ / "x") << "precious";
  EXPECT_THAT(StagedDirectory::create(final_, true).status().message(), HasSubstr("holds 'x'"));
}

TEST_P(StagedDirectoryTest, WhatAppearsMeanwhileIsKept) {
  auto staged = StagedDirectory::create(final_, false);
  ASSERT_TRUE(staged.ok());
  fill(staged->path(), "new");
  fill(final_, "other");
  EXPECT_THAT(staged->publish().message(), HasSubstr("appeared meanwhile"));
  EXPECT_EQ(content_of(final_), "other");
}

// A child replaces the directory over and over and is killed at a random moment.
TEST_P(StagedDirectoryTest, KilledAtAnyMomentLeavesTheOldOrTheNew) {
  std::mt19937 random(7);
  ASSERT_TRUE(put(final_, "0", false).ok());
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int i = 0;; ++i)
        if (!put(final_, std::to_string(i % 10), true).ok()) ::_exit(1);
    }
    ::usleep(1000 + random() % 20000);
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "replacing failed in the child";
    const std::string text = content_of(final_);
    ASSERT_EQ(text.size(), 1u) << "round " << round << ": '" << text << "'";
  }
  // The next one clears what the killed ones left.
  ASSERT_TRUE(put(final_, "end", true).ok());
  EXPECT_EQ(content_of(final_), "end");
  EXPECT_THAT(entries(final_.parent_path()), SizeIs(GetParam() ? 2u : 1u));
}

INSTANTIATE_TEST_SUITE_P(Ways, StagedDirectoryTest, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "Link" : "Exchange"; });

// Not the name that it would have had meanwhile. /proc takes no directory, not even of root.
TEST(StagedDirectory, WhereNothingCanBeWrittenThePlaceThatWasGivenIsNamed) {
  const std::string message = StagedDirectory::create("/proc/case", true).status().message();
  EXPECT_THAT(message, HasSubstr("cannot make '/proc/case': nothing can be written into '/proc'"));
  EXPECT_THAT(message, ::testing::Not(HasSubstr("staged")));
}

TEST(StagedDirectory, APlainDirectoryWithoutExchangeIsAnError) {
  const TemporaryDirectory dir;
  ASSERT_TRUE(put(dir.path() / "p", "old", false).ok());
  pretend_no_rename_exchange(true);
  const Status status = put(dir.path() / "p", "new", true);
  pretend_no_rename_exchange(false);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("RENAME_EXCHANGE"));
  EXPECT_EQ(content_of(dir.path() / "p"), "old");
  EXPECT_THAT(entries(dir.path()), SizeIs(1u));
}

TEST(StagedDirectory, AUsersLinkStaysAndItsTargetIsReplaced) {
  const TemporaryDirectory dir;
  fill(dir.path() / "disk" / "package", "old");
  fs::create_directory_symlink(dir.path() / "disk" / "package", dir.path() / "latest");
  ASSERT_TRUE(put(dir.path() / "latest", "new", true).ok());
  EXPECT_TRUE(fs::is_symlink(dir.path() / "latest"));
  EXPECT_EQ(content_of(dir.path() / "disk" / "package"), "new");
}

TEST(StagedDirectory, StagingOfLivingProcessesAndStrangersStays) {
  const TemporaryDirectory dir;
  const std::string living = ".p.staged-" + std::to_string(::getpid()) + "-1";
  fs::create_directory(dir.path() / living);
  fs::create_directory(dir.path() / ".p.staged-notes");
  fs::create_directory(dir.path() / ".q.staged-999999999-1");
  fs::create_directory(dir.path() / ".p.staged-999999999-1");
  ASSERT_TRUE(put(dir.path() / "p", "x", false).ok());
  EXPECT_TRUE(fs::exists(dir.path() / living));
  EXPECT_TRUE(fs::exists(dir.path() / ".p.staged-notes"));
  EXPECT_TRUE(fs::exists(dir.path() / ".q.staged-999999999-1"));
  EXPECT_FALSE(fs::exists(dir.path() / ".p.staged-999999999-1"));
}

}  // namespace
}  // namespace tenonnx
