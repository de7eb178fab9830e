// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/log.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tenonnx {
namespace {

TEST(Log, SilentWithoutSinkAndHeardWithOne) {
  log_warning("nobody hears {}", 1);
  std::vector<std::pair<LogLevel, std::string>> heard;
  set_log_sink([&](LogLevel level, std::string_view text) { heard.emplace_back(level, text); });
  log_info("node {} of {}", 3, 7);
  log_warning("slow");
  log_debug("{}", "detail");
  set_log_sink({});
  log_info("nobody again");
  ASSERT_EQ(heard.size(), 3u);
  EXPECT_EQ(heard[0], std::make_pair(LogLevel::kInfo, std::string("node 3 of 7")));
  EXPECT_EQ(heard[1].first, LogLevel::kWarning);
  EXPECT_EQ(heard[2].first, LogLevel::kDebug);
}

TEST(Log, SinkMayBeReplacedWhileOthersLog) {
  std::atomic<int> count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) log_info("{}", i);
    });
  for (int i = 0; i < 100; ++i) set_log_sink([&](LogLevel, std::string_view) { ++count; });
  for (auto& t : threads) t.join();
  const int before = count;
  log_info("one more");
  EXPECT_EQ(count, before + 1);
  set_log_sink({});
}

}  // namespace
}  // namespace tenonnx
