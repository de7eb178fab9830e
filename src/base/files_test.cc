// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/temporary_directory.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void write(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }

TEST(Files, ReadsBackWhatWasWritten) {
  const TemporaryDirectory dir;
  const std::string bytes = std::string("a\0b\n", 4) + std::string(10000, 'x');
  ASSERT_TRUE(write_file_atomic(dir.path() / "f", bytes).ok());
  EXPECT_EQ(*read_file(dir.path() / "f"), bytes);
  const std::string_view pieces[] = {"one", "", "two"};
  ASSERT_TRUE(write_file_atomic(dir.path() / "f", pieces).ok());
  EXPECT_EQ(*read_file(dir.path() / "f"), "onetwo");
  // Nothing else is left behind.
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1);
  EXPECT_FALSE(read_file("/proc/self/status")->empty());
}

TEST(Files, ErrorsSayWhatAndWhy) {
  const TemporaryDirectory dir;
  const Status missing = read_file(dir.path() / "none").status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr("none': No such file"));
  EXPECT_EQ(read_file(dir.path()).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MappedFile::open(dir.path()).status().code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(::mkfifo((dir.path() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_file(dir.path() / "pipe").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(write_file_atomic(dir.path() / "no" / "file", "x").code(), StatusCode::kNotFound);
  fs::create_directory(dir.path() / "d");
  EXPECT_FALSE(write_file_atomic(dir.path() / "d", "x").ok());
  EXPECT_TRUE(fs::is_directory(dir.path() / "d"));
}

TEST(Files, MapsWholeFilesAndEmptyOnes) {
  const TemporaryDirectory dir;
  write(dir.path() / "f", "tenon");
  write(dir.path() / "empty", "");
  auto mapped = MappedFile::open(dir.path() / "f");
  ASSERT_TRUE(mapped.ok());
  fs::remove(dir.path() / "f");  // the mapping outlives the name
  EXPECT_EQ((*mapped)->bytes(), "tenon");
  EXPECT_EQ((*MappedFile::open(dir.path() / "empty"))->bytes(), "");
}

TEST(Files, HolesAreKnownAndAreZeros) {
  const TemporaryDirectory dir;
  write(dir.path() / "f", "x");
  fs::resize_file(dir.path() / "f", 10 << 20);
  const auto mapped = *MappedFile::open(dir.path() / "f");
  EXPECT_FALSE(mapped->in_hole(mapped->bytes().substr(0, 10)));
  // Where the file system has no holes the answer is false, which is right as well.
  const std::string_view middle = mapped->bytes().substr(5 << 20, 1 << 20);
  if (mapped->in_hole(middle)) {
    EXPECT_EQ(middle, std::string(1 << 20, '\0'));
  }
  EXPECT_FALSE(mapped->in_hole(mapped->bytes()));
}

TEST(Files, AtomicFileInPieces) {
  const TemporaryDirectory dir;
  {
    auto file = AtomicFile::create(dir.path() / "f");
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->append("ab").ok());
    ASSERT_TRUE(file->append_zeros(3).ok());
    ASSERT_TRUE(file->append("c").ok());
    EXPECT_EQ(file->size(), 6u);
    EXPECT_FALSE(fs::exists(dir.path() / "f"));
    ASSERT_TRUE(file->commit().ok());
    EXPECT_FALSE(file->commit().ok());
  }
  EXPECT_EQ(*read_file(dir.path() / "f"), std::string("ab\0\0\0c", 6));
  {
    auto dropped = AtomicFile::create(dir.path() / "g");
    ASSERT_TRUE(dropped->append("x").ok());
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1);
}

// The digests are those of FIPS 180-2, appendix B.
TEST(Files, Sha256) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const TemporaryDirectory dir;
  write(dir.path() / "a", std::string(1000000, 'a'));
  EXPECT_EQ(*sha256_file(dir.path() / "a"),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(sha256_file(dir.path() / "b").status().code(), StatusCode::kNotFound);
}

TEST(Files, PathsStayInsideTheirDirectory) {
  const TemporaryDirectory dir;
  const fs::path root = dir.path() / "package";
  fs::create_directories(root / "sub");
  write(dir.path() / "secret", "x");
  write(dir.path() / "package-2", "x");
  fs::create_symlink(dir.path() / "secret", root / "link");
  fs::create_directory_symlink(dir.path(), root / "up");
  fs::create_symlink("sub", root / "inner");
  EXPECT_EQ(*resolve_inside(root, "sub/new.onnx"), root / "sub/new.onnx");
  EXPECT_TRUE(resolve_inside(root, "inner/x").ok());
  EXPECT_TRUE(resolve_inside(root, "./a..b").ok());
  for (const std::string_view bad :
       {std::string_view(""), std::string_view("/etc/passwd"), std::string_view("../secret"),
        std::string_view("sub/../../secret"), std::string_view("link"),
        std::string_view("up/secret"), std::string_view("."), std::string_view("a\0b", 3)})
    EXPECT_EQ(resolve_inside(root, bad).status().code(), StatusCode::kInvalidArgument) << bad;
  EXPECT_THAT(resolve_inside(root, "../secret").status().message(),
              HasSubstr("path '../secret' leaves its directory by '..'"));
  EXPECT_THAT(resolve_inside(root, "link").status().message(), HasSubstr("symbolic link"));
  fs::current_path(root);
  EXPECT_TRUE(resolve_inside("", "sub/x").ok());
  EXPECT_FALSE(resolve_inside("", "up/secret").ok());
  // Not there: that is for who opens it to say.
  EXPECT_EQ(*resolve_inside("", "missing.data"), "missing.data");
  EXPECT_TRUE(resolve_inside("sub", "missing.data").ok());
  EXPECT_TRUE(resolve_inside("nowhere", "missing.data").ok());
  EXPECT_THAT(resolve_inside("", "/etc/passwd").status().message(), HasSubstr("inside '.'"));
  fs::current_path("/");
}

}  // namespace
}  // namespace tenonnx
