// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/status.h"

namespace tenonnx {
namespace {

TEST(Parallel, EachStepOnce) {
  for (const std::size_t count : {0U, 1U, 2U, 1000U}) {
    std::vector<std::atomic<int>> calls(count);
    EXPECT_TRUE(parallel_for(count, 0, [&](std::size_t i) {
                  ++calls[i];
                  return Status();
                }).ok());
    for (const auto& one : calls) EXPECT_EQ(one, 1);
  }
}

TEST(Parallel, TheErrorOfTheLowestStep) {
  const Status status = parallel_for(
      100, 3, [](std::size_t i) { return i % 10 == 7 ? InvalidArgument("step {}", i) : Status(); });
  EXPECT_EQ(status.message(), "step 7");
}

}  // namespace
}  // namespace tenonnx
