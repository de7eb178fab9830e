// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/printable.h"

#include <gtest/gtest.h>

namespace tenonnx {
namespace {

TEST(Printable, KeepsWhatShowsAndNothingElse) {
  EXPECT_EQ(printable("plain\tgr\303\274n \342\202\254 \360\237\231\202\n"),
            "plain\tgr\303\274n \342\202\254 \360\237\231\202\n");
  EXPECT_EQ(printable("\033[2J\a\x7F"), "?[2J??");
  EXPECT_EQ(printable(std::string_view("\0a", 2)), "?a");
  EXPECT_EQ(printable("\302\2332J"), "?2J");             // C1: the same as ESC [
  EXPECT_EQ(printable("a\342\200\256b"), "a?b");         // right to left from here
  EXPECT_EQ(printable("\300\233 \377 \303"), "?? ? ?");  // too long a form, no byte of it, cut
  EXPECT_EQ(printable("10%\r20%\r\n"), "10%\n20%\n");
}

}  // namespace
}  // namespace tenonnx
