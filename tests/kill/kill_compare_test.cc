// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// `tenonnx compare` killed with SIGKILL at random moments and gone on with --resume: what it prints
// in the end is what a run prints that nobody disturbed.
// TENONNX_KILLS sets the number of kills (8), TENONNX_KILL_SEED the moments.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "kill_child.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

class KillCompare : public ::testing::Test {
 protected:
  // Small windows, so that there are many; a cache of its own.
  pid_t start(const fs::path& cache, const fs::path& out, bool resume) const {
    const std::string model = TENONNX_TEST_SOURCE_DIR "/examples/models/shapes_deimv2.onnx";
    std::vector<std::string> args = {"--quiet",  "--json",      "compare",         model,
                                     "--on",     "sim:htp-v73", "--random-inputs", "1",
                                     "--memory", "20",          "--cache",         cache.string()};
    if (resume) args.emplace_back("--resume");
    return start_tenonnx(args, out);
  }
  // What depends on how often it was ended goes.
  static Json result_of(const fs::path& path) {
    auto json = read_json_file(path);
    EXPECT_TRUE(json.ok()) << json.status().message();
    if (!json.ok()) return {};
    (*json)["settings"].erase("recalled");
    Json notes = Json::array();
    for (const Json& note : (*json)["notes"])
      if (!note.get<std::string>().starts_with("--resume:")) notes.push_back(note);
    (*json)["notes"] = notes;
    return *json;
  }
  static std::vector<fs::path> windows_in(const fs::path& cache) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::recursive_directory_iterator it(cache, error), end; !error && it != end; ++it)
      if (it->is_regular_file() && it->path().extension() == ".json") files.push_back(it->path());
    std::sort(files.begin(), files.end());
    return files;
  }
  TemporaryDirectory temporary_;
};

TEST_F(KillCompare, GoesOnToTheSameResult) {
  const auto begin = Clock::now();
  // Random inputs: INCONCLUSIVE, exit code 3.
  ASSERT_EQ(wait_for(start(temporary_.path() / "whole", temporary_.path() / "whole.json", false)),
            3);
  const auto whole = std::chrono::duration<double>(Clock::now() - begin);
  const Json expected = result_of(temporary_.path() / "whole.json");
  ASSERT_GT(expected["settings"]["windows"], 4) << "too few windows to be ended between";

  const int kills = number_of("TENONNX_KILLS", 8);
  std::mt19937 random(static_cast<unsigned>(number_of("TENONNX_KILL_SEED", 1)));
  const fs::path cache = temporary_.path() / "cache", out = temporary_.path() / "out.json";
  int killed = 0;
  std::size_t went_on = 0;
  for (int i = 0; i < kills; ++i) {
    const pid_t pid = start(cache, out, true);
    ASSERT_GT(pid, 0);
    // What is done is not done again, so that a run gets shorter with every kill.
    std::this_thread::sleep_for(whole * std::uniform_real_distribution<>(0.1, 0.7)(random));
    ::kill(pid, SIGKILL);  // our own child, not yet waited for: the id is still its own
    const int code = wait_for(pid);
    ASSERT_TRUE(code == -SIGKILL || code == 3) << code;
    if (code == 3) {
      EXPECT_EQ(result_of(out), expected) << "kill " << i;
      fs::remove_all(cache);  // from the beginning
      continue;
    }
    ++killed;
    went_on = std::max(went_on, windows_in(cache).size());
  }
  EXPECT_GT(killed, 0) << "no comparison was killed: the moments miss it";
  EXPECT_GT(went_on, 0U) << "nothing was kept to go on from: the moments are too early";

  const auto recalled = [&] {
    EXPECT_EQ(wait_for(start(cache, out, true)), 3);
    EXPECT_EQ(result_of(out), expected);
    const auto json = read_json_file(out);
    return json.ok() ? (*json)["settings"]["recalled"].get<std::size_t>() : 0;
  };
  recalled();
  // A file that ends early, as after a power cut, and one that was emptied, among good ones.
  const auto files = windows_in(cache);
  ASSERT_EQ(files.size(), expected["settings"]["windows"].get<std::size_t>());
  fs::resize_file(files[0], fs::file_size(files[0]) / 2);
  fs::resize_file(files[1], 0);
  EXPECT_EQ(recalled(), files.size() - 2);
  EXPECT_EQ(recalled(), files.size());
  RecordProperty("killed", killed);
}

}  // namespace
}  // namespace tenonnx
