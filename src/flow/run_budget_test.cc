// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/run_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

TEST(RunBudget, WithoutALimitRunsAreCounted) {
  RunBudget budget;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(budget.take(false));
  EXPECT_EQ(budget.used(), 100U);
  EXPECT_FALSE(budget.used_up());
}

TEST(RunBudget, RefusesOneTooMany) {
  RunBudget budget(2);
  EXPECT_TRUE(budget.take(true));
  budget.recall();  // costs nothing
  EXPECT_TRUE(budget.take(false));
  EXPECT_FALSE(budget.used_up()) << "nothing was refused yet";
  EXPECT_FALSE(budget.take(true));
  EXPECT_TRUE(budget.used_up());
  EXPECT_EQ(budget.used(), 2U);
  EXPECT_EQ(budget.recalled(), 1U);
}

// What a cache keeps is not run again; what was left undone is.
TEST(RunBudget, TheLeastLimitTheNextTime) {
  RunBudget budget(3);
  EXPECT_TRUE(budget.take(true) && budget.take(true) && budget.take(false));
  EXPECT_FALSE(budget.take(true));
  budget.leave_undone(5);
  EXPECT_EQ(budget.needed(), 6U);
}

TEST(RunBudget, SaysWhereItStopped) {
  const RunBudget budget(3);
  const BudgetStop images = stop_of(budget, 3, 8, 6);
  EXPECT_TRUE(images.stopped);
  EXPECT_THAT(images.text, HasSubstr("3 runs was used up when 3 of 8 inputs had been compared"));
  EXPECT_THAT(stop_of(budget, 8, 8, 1).text,
              HasSubstr("before the run that shows where the nodes run"));
}

}  // namespace
}  // namespace tenonnx
