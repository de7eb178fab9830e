// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/qnn_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "adapters/address.h"
#include "base/files.h"
#include "base/temporary_directory.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class QnnLibraryTest : public ::testing::Test {
 protected:
  fs::path install(const std::string& name, const std::string& version, bool complete) {
    const fs::path package = dir_.path() / name / "onnxruntime_qnn";
    fs::create_directories(package);
    write(package / kQnnLibraryFile, "");
    write(package / "build_and_package_info.py",
          "package_name = 'onnxruntime-qnn'\n__version__ = '" + version +
              "'\nqnn_version = '2.51.0'\n");
    if (complete) write(dir_.path() / name / ".complete", "");
    return package / kQnnLibraryFile;
  }
  static void write(const fs::path& file, const std::string& text) {
    ASSERT_TRUE(write_file_atomic(file, text).ok()) << file;
  }
  std::string error(const QnnSearch& search) {
    const auto found = find_qnn_library(search);
    if (found.ok()) return "no error: " + found->file.string();
    EXPECT_EQ(found.status().code(), StatusCode::kNotFound);
    return found.status().message();
  }
  const TemporaryDirectory dir_;
};

TEST_F(QnnLibraryTest, SaysHowToGetIt) {
  const std::string text = error({{}, std::nullopt, dir_.path()});
  EXPECT_THAT(text, AllOf(HasSubstr("Qualcomm's provider"), HasSubstr("./dev vendor qnn"),
                          HasSubstr("Qualcomm AI Stack License"), HasSubstr("TENONNX_QNN")));
  EXPECT_THAT(error({{}, std::nullopt, {}}), HasSubstr("./dev vendor qnn"));
  EXPECT_THAT(error({{}, std::nullopt, dir_.path() / "none"}), HasSubstr("./dev vendor qnn"));
}

TEST_F(QnnLibraryTest, TakesTheNewestThatIsComplete) {
  install("qnn-2.9.0", "2.9.0", true);
  const fs::path newest = install("qnn-2.10.0", "2.10.0", true);
  install("qnn-3.0.0", "3.0.0", false);  // killed half-way
  install(".work.x", "4.0.0", true);
  const auto found = find_qnn_library(QnnSearch{{}, std::nullopt, dir_.path()});
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->file, newest);
  EXPECT_EQ(found->version, "2.10.0");
  EXPECT_EQ(found->qnn, "2.51.0");
}

TEST_F(QnnLibraryTest, AnInstallationWithoutStampDoesNotCount) {
  install("qnn-2.7.0", "2.7.0", false);
  EXPECT_THAT(error({{}, std::nullopt, dir_.path()}), HasSubstr("is not installed"));
}

TEST_F(QnnLibraryTest, WhatIsNamedComesFirst) {
  install("qnn-2.7.0", "2.7.0", true);
  const fs::path own = install("own", "2.6.0", false);
  const auto by_option = find_qnn_library(QnnSearch{own, "/not/there", dir_.path()});
  ASSERT_TRUE(by_option.ok()) << by_option.status().message();
  EXPECT_EQ(by_option->version, "2.6.0");
  const auto by_environment =
      find_qnn_library(QnnSearch{{}, (dir_.path() / "own").string(), dir_.path()});
  ASSERT_TRUE(by_environment.ok()) << by_environment.status().message();
  EXPECT_EQ(by_environment->file, own);
  EXPECT_THAT(
      error({"/not/there.so", std::nullopt, dir_.path()}),
      AllOf(HasSubstr("library='/not/there.so' does not exist"), HasSubstr("./dev vendor qnn")));
  EXPECT_THAT(error({{}, "/not/there", dir_.path()}), HasSubstr("TENONNX_QNN='/not/there'"));
  fs::create_directories(dir_.path() / "empty");
  EXPECT_THAT(error({dir_.path() / "empty", std::nullopt, {}}),
              HasSubstr("is a directory without libonnxruntime_providers_qnn.so"));
}

TEST_F(QnnLibraryTest, NeedsItsRuntime) {
  EXPECT_TRUE(check_qnn_runtime("1.29.0").ok());
  EXPECT_TRUE(check_qnn_runtime("1.31.2").ok());
  for (const char* version : {"1.28.1", "1.32.0", "2.0.0", "own build"})
    EXPECT_THAT(check_qnn_runtime(version).message(),
                AllOf(HasSubstr("1.29 to 1.31"), HasSubstr(version)));
}

TEST_F(QnnLibraryTest, TheExecutorNamesItsAddress) {
  ASSERT_EQ(::setenv("TENONNX_QNN", "/not/there", 1), 0);
  const auto made = make_executor("qnn:soc=43,arch=73");
  ::unsetenv("TENONNX_QNN");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(made.status().message(), AllOf(HasSubstr("executor 'qnn:soc=43,arch=73'"),
                                             HasSubstr("'/not/there' does not exist")));
}

TEST_F(QnnLibraryTest, AFileDoesNotNameALibrary) {
  for (const char* address : {"qnn:soc=43,library=/tmp/x.so", "qnn:library=/tmp/x.so,soc=43",
                              "qnn:soc=43,op_affinity=/etc/passwd"}) {
    const auto made = make_executor(address, AddressOrigin::kFile);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(made.status().message(),
                AllOf(HasSubstr("on the word of a package"), Not(HasSubstr("does not exist"))));
  }
}

TEST_F(QnnLibraryTest, AFileThatIsNoProvider) {
  write(dir_.path() / kQnnLibraryFile, "not a library");
  const auto executor = make_executor("qnn:soc=43,library=" + dir_.path().string());
  ASSERT_TRUE(executor.ok()) << executor.status().message();
  Model model;
  const auto loaded = (*executor)->load(model, {});
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.status().message(),
              AllOf(HasSubstr("qnn:soc=43,library="), HasSubstr("cannot be loaded as a provider")));
}

}  // namespace
}  // namespace tenonnx
