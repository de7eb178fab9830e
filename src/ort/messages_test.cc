// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RuntimeMessages, CollectWhileTheyLive) {
  deliver_runtime_message("before");
  RuntimeMessages outer;
  {
    RuntimeMessages inner;
    deliver_runtime_message("both");
    EXPECT_THAT(inner.take(), ElementsAre("both"));
    EXPECT_THAT(inner.take(), IsEmpty());
  }
  deliver_runtime_message("outer");
  EXPECT_THAT(outer.take(), ElementsAre("both", "outer"));
}

TEST(RuntimeMessages, AreBounded) {
  RuntimeMessages messages;
  for (std::size_t i = 0; i < RuntimeMessages::kMost + 10; ++i) deliver_runtime_message("m");
  EXPECT_EQ(messages.take().size(), RuntimeMessages::kMost);
}

}  // namespace
}  // namespace tenonnx
