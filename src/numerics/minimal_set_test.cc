// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/minimal_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace tenonnx {
namespace {

using ::testing::UnorderedElementsAreArray;

std::vector<int> first(int count) {
  std::vector<int> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

bool contains_all(const std::vector<int>& set, const std::vector<int>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](int w) { return std::find(set.begin(), set.end(), w) != set.end(); });
}

struct Count {
  int trials = 0;
  int allowed = 1000000;
};

MinimalSet search(std::vector<int> start, const std::vector<int>& wanted, Count& count) {
  auto found = minimize_set(std::move(start),
                            [&](const std::vector<int>& set) -> Result<std::optional<bool>> {
                              if (++count.trials > count.allowed) return std::optional<bool>();
                              return std::optional<bool>(contains_all(set, wanted));
                            });
  EXPECT_TRUE(found.ok());
  return found.ok() ? std::move(*found) : MinimalSet();
}

TEST(MinimalSet, FindsScatteredElements) {
  std::mt19937 engine(7);
  for (int round = 0; round < 200; ++round) {
    const int size = 1 + static_cast<int>(engine() % 60);
    std::set<int> wanted;
    for (std::size_t i = 0; i < 1 + engine() % 5; ++i)
      wanted.insert(static_cast<int>(engine() % size));
    Count count;
    const MinimalSet found = search(first(size), {wanted.begin(), wanted.end()}, count);
    EXPECT_TRUE(found.minimal);
    EXPECT_THAT(found.set, UnorderedElementsAreArray(wanted)) << "of " << size;
  }
}

TEST(MinimalSet, TheLikeliestFirstCostsFew) {
  Count count;
  search(first(64), {0}, count);
  EXPECT_LE(count.trials, 6);  // each half holds it
}

TEST(MinimalSet, OneElementNeedsNoTrial) {
  Count count;
  EXPECT_TRUE(search({5}, {5}, count).minimal);
  EXPECT_EQ(count.trials, 0);
}

// What was found until then holds still, and is not called minimal.
TEST(MinimalSet, TrialsThatRunOut) {
  Count count;
  count.allowed = 3;
  const std::vector<int> wanted = {3, 17, 40};
  const MinimalSet found = search(first(64), wanted, count);
  EXPECT_FALSE(found.minimal);
  EXPECT_TRUE(contains_all(found.set, wanted));
}

// Two that do the same: one of them is left out, not both.
TEST(MinimalSet, EitherOfTwo) {
  auto found =
      minimize_set(first(10), [](const std::vector<int>& set) -> Result<std::optional<bool>> {
        return std::optional<bool>(contains_all(set, {2}) || contains_all(set, {8}));
      });
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->minimal);
  EXPECT_EQ(found->set.size(), 1U);
}

}  // namespace
}  // namespace tenonnx
