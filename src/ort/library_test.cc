// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxruntime_cxx_api.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/temporary_directory.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class LibrarySearchTest : public testing::Test {
 protected:
  fs::path touch(const fs::path& relative) {
    fs::create_directories((root_ / relative).parent_path());
    std::ofstream(root_ / relative) << "not a library";
    return root_ / relative;
  }
  TemporaryDirectory directory_;
  const fs::path& root_ = directory_.path();
};

TEST_F(LibrarySearchTest, DirectoriesComeBeforeTheConfiguredFileAndTheLoader) {
  const auto first = touch("bin/libonnxruntime.so.1");
  const auto second = touch("lib/libonnxruntime.so");
  const auto found = library_candidates(
      {.environment = {}, .directories = {root_ / "bin", root_ / "lib"}, .configured = "/x.so"});
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(*found, ElementsAre(first, second, "/x.so", "libonnxruntime.so.1"));
}

TEST_F(LibrarySearchTest, EnvironmentExcludesEverythingElse) {
  touch("bin/libonnxruntime.so.1");
  const auto named = touch("mine/lib/libonnxruntime.so.1.30.0");
  for (const fs::path& value : {root_ / "mine", root_ / "mine/lib", named}) {
    const auto found = library_candidates(
        {.environment = value.string(), .directories = {root_ / "bin"}, .configured = "/x.so"});
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_THAT(*found, ElementsAre(named));
  }
}

TEST_F(LibrarySearchTest, EnvironmentThatNamesNothingIsAnError) {
  const auto missing = library_candidates({.environment = (root_ / "nowhere").string()});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("TENONNX_ONNXRUNTIME="));
  EXPECT_THAT(missing.status().message(), HasSubstr("nowhere"));
  const auto empty = library_candidates({.environment = root_.string()});
  ASSERT_FALSE(empty.ok());
  EXPECT_THAT(empty.status().message(), HasSubstr("no libonnxruntime.so.1"));
}

// Two libraries that differ only in the version that they offer.
const OrtApi* no_api(std::uint32_t) noexcept { return nullptr; }
const OrtApi* real_api(std::uint32_t) noexcept { return &Ort::GetApi(); }

TEST(LibraryVersionTest, OldLibraryIsNamedWithItsVersionAndWhatIsNeeded) {
  const OrtApiBase old{no_api, []() noexcept { return "1.18.1"; }};
  const Status status = check_library_version(old, "/opt/vendor/libonnxruntime.so.1");
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("/opt/vendor/libonnxruntime.so.1"));
  EXPECT_THAT(status.message(), HasSubstr("1.18.1"));
  EXPECT_THAT(status.message(), HasSubstr("1.29 or newer"));
}

TEST(LibraryVersionTest, VersionThatCannotBeReadIsJudgedByTheApi) {
  ASSERT_TRUE(onnxruntime().ok());
  const OrtApiBase vendor_old{no_api, []() noexcept { return "vendor-build"; }};
  EXPECT_FALSE(check_library_version(vendor_old, "/x").ok());
  const OrtApiBase vendor_new{real_api, []() noexcept { return "vendor-build"; }};
  EXPECT_TRUE(check_library_version(vendor_new, "/x").ok());
  const OrtApiBase newer{real_api, []() noexcept { return "2.0.0"; }};
  EXPECT_TRUE(check_library_version(newer, "/x").ok());
}

TEST(LibraryTest, OpensOnceForAllThreads) {
  std::vector<const OnnxRuntime*> seen(8);
  std::vector<std::thread> threads;
  for (auto& slot : seen) {
    threads.emplace_back([&slot] {
      const auto runtime = onnxruntime();
      slot = runtime.ok() ? *runtime : nullptr;
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_NE(seen[0], nullptr) << onnxruntime().status().message();
  for (const auto* runtime : seen) EXPECT_EQ(runtime, seen[0]);
  EXPECT_TRUE(fs::exists(seen[0]->path)) << seen[0]->path;
  EXPECT_THAT(seen[0]->version, testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+.*"));
  EXPECT_FALSE(seen[0]->build_info.empty());
  EXPECT_NE(onnxruntime_env(), nullptr);
}

// Opening happens once per process, so what goes wrong is seen in a child of its own.
std::string error_of_child(const std::string& environment) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(pipe_ends[0]);
    dup2(pipe_ends[1], STDOUT_FILENO);
    setenv("TENONNX_ONNXRUNTIME", environment.c_str(), 1);
    execl("/proc/self/exe", "ort_test", "--gtest_filter=LibraryChild.*",
          "--gtest_also_run_disabled_tests", nullptr);
    _exit(127);
  }
  close(pipe_ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, n);
  close(pipe_ends[0]);
  return text;
}

TEST(LibraryChild, DISABLED_PrintsTheErrorTwice) {
  for (int i = 0; i < 2; ++i)
    std::printf("child %d: %s\n", i, onnxruntime().status().message().c_str());
}

TEST_F(LibrarySearchTest, FailureIsRepeatable) {
  const auto file = touch("broken/libonnxruntime.so.1");
  const std::string text = error_of_child(file.string());
  EXPECT_THAT(text, HasSubstr("child 0: no usable ONNX Runtime (1.29 or newer)"));
  EXPECT_THAT(text, HasSubstr("child 1: no usable ONNX Runtime (1.29 or newer)"));
  EXPECT_THAT(text, HasSubstr(file.string()));
}

TEST(LibraryErrorTest, LibraryThatIsSomethingElse) {
  Dl_info libc{};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&getppid), &libc), 0);
  EXPECT_THAT(error_of_child(libc.dli_fname), HasSubstr("it is not ONNX Runtime"));
}

TEST(LibraryErrorTest, EnvironmentThatNamesNothing) {
  EXPECT_THAT(error_of_child("/nowhere/at/all"), HasSubstr("no such file or directory"));
}

}  // namespace
}  // namespace tenonnx
