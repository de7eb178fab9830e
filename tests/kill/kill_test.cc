// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// `tenonnx deploy --force` over an existing package, killed with SIGKILL at random moments: every
// time the package that stands there is the old one or the new one, whole.
// TENONNX_KILLS sets the number of kills (20), TENONNX_KILL_SEED the moments.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "kill_child.h"
#include "package/manifest.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Starts `tenonnx deploy` of the example onto `package`; `cut` is "none" or empty (the contract's).
pid_t start_deploy(const fs::path& package, const std::string& cut) {
  std::vector<std::string> args = {
      "--quiet",  "deploy",        TENONNX_TEST_SOURCE_DIR "/examples/models/shapes_deimv2.onnx",
      "--target", "cpu",           "--force",
      "-o",       package.string()};
  if (!cut.empty()) args.insert(args.end(), {"--cut", cut});
  return start_tenonnx(std::move(args));
}

// Random inputs: exit code 3. Returns the manifest's hash.
std::string deploy_whole(const fs::path& package, const std::string& cut) {
  EXPECT_EQ(wait_for(start_deploy(package, cut)), 3);
  const auto hash = sha256_file(package / "manifest.json");
  EXPECT_TRUE(hash.ok()) << hash.status().message();
  return hash.ok() ? *hash : "";
}

TEST(Kill, DeployLeavesTheOldPackageOrTheNewOne) {
  TemporaryDirectory temporary;
  const fs::path package = temporary.path() / "model-package";
  const std::string cuts[2] = {"none", ""};
  std::string hashes[2];
  hashes[0] = deploy_whole(package, cuts[0]);
  const auto begin = Clock::now();
  hashes[1] = deploy_whole(package, cuts[1]);
  const auto whole = std::chrono::duration<double>(Clock::now() - begin);
  ASSERT_NE(hashes[0], hashes[1]);
  // Else "the new one" could not be told: the same deploy gives the same bytes.
  ASSERT_EQ(deploy_whole(package, cuts[0]), hashes[0]);

  const int kills = number_of("TENONNX_KILLS", 20);
  std::mt19937 random(static_cast<unsigned>(number_of("TENONNX_KILL_SEED", 1)));
  int stands = 0, killed = 0, exchanged = 0;
  for (int i = 0; i < kills; ++i) {
    const int next = 1 - stands;
    // Every second one late, where the directory is filled, flushed and exchanged.
    const double from = i % 2 == 0 ? 0.0 : 0.8;
    const double moment = std::uniform_real_distribution<>(from, 1.05)(random);
    const pid_t pid = start_deploy(package, cuts[next]);
    ASSERT_GT(pid, 0);
    std::this_thread::sleep_for(whole * moment);
    ::kill(pid, SIGKILL);  // our own child, not yet waited for: the id is still its own
    const int code = wait_for(pid);
    ASSERT_TRUE(code == -SIGKILL || code == 3) << code;
    killed += code == -SIGKILL ? 1 : 0;

    const auto read = read_package(package);
    ASSERT_TRUE(read.ok()) << "kill " << i << " at " << moment << ": " << read.status().message();
    const auto hash = sha256_file(package / "manifest.json");
    ASSERT_TRUE(hash.ok());
    ASSERT_TRUE(*hash == hashes[0] || *hash == hashes[1]) << "kill " << i << " at " << moment;
    if (*hash == hashes[next]) {
      stands = next;
      ++exchanged;
    } else {
      EXPECT_NE(code, 3) << "deploy ended well and the old package stands";
    }
  }
  EXPECT_GT(killed, 0) << "no deploy was killed: the moments miss it";
  RecordProperty("killed", killed);
  RecordProperty("exchanged", exchanged);

  // What killed processes left behind goes with the next deploy.
  deploy_whole(package, cuts[stands]);
  for (const auto& entry : fs::directory_iterator(temporary.path()))
    EXPECT_EQ(entry.path(), package) << "left behind";
}

}  // namespace
}  // namespace tenonnx
