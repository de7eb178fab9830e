// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "base/wording.h"

#include <gtest/gtest.h>

namespace tenonnx {
namespace {

TEST(Wording, CountsNouns) {
  EXPECT_EQ(counted(0, "node"), "0 nodes");
  EXPECT_EQ(counted(1, "node"), "1 node");
  EXPECT_EQ(counted(2, "node"), "2 nodes");
  EXPECT_EQ(counted(1, "box", "boxes"), "1 box");
  EXPECT_EQ(counted(3, "box", "boxes"), "3 boxes");
}

TEST(Wording, LinesThatFitStayAsTheyAre) {
  EXPECT_EQ(wrapped(""), "");
  EXPECT_EQ(wrapped("a  b\n\n  c  \n", 8), "a  b\n\n  c  \n");
  EXPECT_EQ(wrapped("12345678", 8), "12345678");
}

TEST(Wording, LongLinesHang) {
  EXPECT_EQ(wrapped("one two three four", 9), "one two\n  three\n  four");
  EXPECT_EQ(wrapped("  one two\nshort\n  one two three\n", 9),
            "  one two\nshort\n  one two\n    three\n");
  EXPECT_EQ(wrapped("  [1] one two three", 13), "  [1] one two\n      three");
  EXPECT_EQ(wrapped("  [12] one two three", 14), "  [12] one two\n       three");
}

TEST(Wording, ALongWordSticksOut) {
  EXPECT_EQ(wrapped("in /a/long/path now", 9), "in\n  /a/long/path\n  now");
  EXPECT_EQ(wrapped("/a/long/path now", 9), "/a/long/path\n  now");
}

TEST(Wording, ACommandToBeCopiedStaysWhole) {
  const std::string line = "  next:    tenonnx run package images -o out";
  EXPECT_EQ(wrapped(line, 20), line);
  EXPECT_EQ(wrapped("tenonnx run package", 10), "tenonnx run package");
  EXPECT_EQ(wrapped("do not use: tenonnx run", 12), "do not use:\n  tenonnx\n  run");
}

TEST(Wording, WhatIsQuotedStaysWhole) {
  EXPECT_EQ(wrapped("write it to 'my own file', then", 22), "write it to\n  'my own file', then");
  EXPECT_EQ(wrapped("see (tenonnx run a b) for it", 20), "see\n  (tenonnx run a b)\n  for it");
  // An apostrophe opens nothing, and what does not fit is broken as ever.
  EXPECT_EQ(wrapped("the device's own and the others' names", 20),
            "the device's own and\n  the others' names");
  EXPECT_EQ(wrapped("it's 'a name that is longer than a line' so", 20),
            "it's 'a name that is\n  longer than a\n  line' so");
}

TEST(Wording, AColumnGoesOnBelowItself) {
  EXPECT_EQ(in_column("one two three", 4, 12), "one two\n    three");
  EXPECT_EQ(in_column("one two", 4, 12), "one two");
  EXPECT_EQ(in_column("", 4, 12), "");
}

TEST(Wording, ShortensNamesFromTheFront) {
  EXPECT_EQ(shortened("/model/decoder/Mul", 18), "/model/decoder/Mul");
  EXPECT_EQ(shortened("/model/decoder/Mul", 10), "...der/Mul");
  EXPECT_EQ(shortened("xxxxxxä", 4), "...");  // no half of a character
  EXPECT_EQ(shortened("xxxxxxä", 5), "...ä");
}

TEST(Wording, CountsCharactersNotBytes) {
  EXPECT_EQ(screen_width("Größe"), 5u);
  EXPECT_EQ(wrapped("Größe äöü", 9), "Größe äöü");
}

}  // namespace
}  // namespace tenonnx
