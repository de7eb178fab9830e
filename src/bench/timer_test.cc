// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "bench/timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/status.h"

namespace tenonnx {
namespace {

using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::SizeIs;

Stage sleeping(const char* name, int milliseconds, int& calls) {
  return {name, [&calls, milliseconds]() -> Status {
            ++calls;
            std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
            return {};
          }};
}

TEST(TimeStagesTest, FirstRunAndWarmUpAreNotCounted) {
  int a = 0;
  int b = 0;
  const std::vector<Stage> stages = {sleeping("a", 2, a), sleeping("b", 1, b)};
  const auto timing = time_stages(stages, 3, 5);
  ASSERT_TRUE(timing.ok()) << timing.status().message();
  EXPECT_EQ(a, 1 + 3 + 5);
  EXPECT_EQ(b, 1 + 3 + 5);
  EXPECT_THAT(timing->total_ms, SizeIs(5));
  EXPECT_GE(timing->first_ms, 3.0);
  // A sleep never ends early; it may end late, so there is no upper limit here.
  EXPECT_THAT(timing->stage_ms[0], Each(Ge(2.0)));
  EXPECT_THAT(timing->stage_ms[1], Each(Ge(1.0)));
}

TEST(TimeStagesTest, StagesOfOneRunAddUpToItsTotal) {
  int calls = 0;
  const std::vector<Stage> stages = {sleeping("a", 1, calls), sleeping("b", 0, calls),
                                     sleeping("c", 1, calls)};
  const auto timing = time_stages(stages, 0, 4);
  ASSERT_TRUE(timing.ok());
  for (std::size_t run = 0; run < 4; ++run) {
    double sum = 0;
    for (const auto& stage : timing->stage_ms) sum += stage[run];
    // Differences of doubles below a second: rounding only.
    EXPECT_NEAR(sum, timing->total_ms[run], 1e-9);
  }
}

TEST(TimeStagesTest, ErrorNamesItsStage) {
  int calls = 0;
  const std::vector<Stage> stages = {sleeping("encoder", 0, calls),
                                     {"decoder", [] { return Status(InvalidArgument("broken")); }}};
  const auto timing = time_stages(stages, 0, 4);
  ASSERT_FALSE(timing.ok());
  EXPECT_EQ(timing.status().message(), "decoder: broken");
  EXPECT_EQ(calls, 1);
}

TEST(TimeStagesTest, CountsAreChecked) {
  int calls = 0;
  const std::vector<Stage> stages = {sleeping("a", 0, calls)};
  EXPECT_THAT(time_stages(stages, 0, 0).status().message(), HasSubstr("0 runs asked for"));
  EXPECT_THAT(time_stages(stages, -1, 1).status().message(), HasSubstr("-1 warm-up runs"));
  EXPECT_FALSE(time_stages({}, 0, 1).ok());
  EXPECT_EQ(calls, 0);
}

TEST(TimeStagesTest, ReportsProgress) {
  int calls = 0;
  std::vector<std::int64_t> seen;
  const std::vector<Stage> stages = {sleeping("a", 0, calls)};
  const Progress progress = [&](std::string_view step, std::int64_t done, std::int64_t total) {
    EXPECT_EQ(step, "forward");
    EXPECT_EQ(total, 3);
    seen.push_back(done);
  };
  ASSERT_TRUE(time_stages(stages, 2, 3, progress, "forward").ok());
  EXPECT_THAT(seen, testing::ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace tenonnx
