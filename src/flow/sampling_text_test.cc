// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/sampling_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tenonnx {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

SampledLevelProof level(std::vector<std::int64_t> size) {
  SampledLevelProof one;
  one.level.node = "GridSample 'sample'";
  one.level.size = std::move(size);
  one.made.points = one.made.centre = one.made.corner = one.made.border = one.made.tie = 384;
  one.made.outside_less = one.made.outside_more = one.made.far = 96;
  one.real.points = 35;
  one.taps.taps = 1200;
  one.tap_sets = 4;
  return one;
}

SamplingProof proof_of(std::vector<SampledLevelProof> levels) {
  SamplingProof proof;
  proof.levels = std::move(levels);
  return proof;
}

std::vector<std::string> words(const std::string& text, std::string_view start) {
  std::vector<std::string> out;
  const std::size_t at = text.find(start);
  EXPECT_NE(at, std::string::npos) << text;
  if (at == std::string::npos) return out;
  std::string word;
  for (std::size_t i = at; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] != ' ') word += text[i];
    if ((text[i] == ' ' || i + 1 == text.size() || text[i + 1] == '\n') && !word.empty())
      out.push_back(std::move(word)), word.clear();
  }
  return out;
}

TEST(SamplingText, NamesTheNodeAndHasALineForEachLevel) {
  SampledLevelProof second = level({10, 6});
  second.taps.wrong = 7;
  second.taps.index_difference = 0.5;
  const std::string text = describe(proof_of({level({80, 40}), second}), "    ");
  EXPECT_THAT(text, StartsWith("GridSample 'sample' and 1 more level, linear, zeros\n"));
  // Height x width; points made and real, wrong taps of all, the largest distance of an index.
  const auto first_row = words(text, "40x80"), second_row = words(text, "6x10");
  ASSERT_GE(first_row.size(), 6U);
  EXPECT_EQ(std::vector(first_row.begin(), first_row.begin() + 6),
            (std::vector<std::string>{"40x80", "384", "35", "0", "1200", "0"}));
  ASSERT_GE(second_row.size(), 6U);
  EXPECT_EQ(std::vector(second_row.begin(), second_row.begin() + 6),
            (std::vector<std::string>{"6x10", "384", "35", "7", "1200", "0.5"}));
  // Rounding of a grid along the longer axis: 80 / 2 pixels times half a step of 2^-11, of 2^-8,
  // of 2 / 255.
  ASSERT_EQ(first_row.size(), 9U);
  EXPECT_EQ(std::vector(first_row.begin() + 6, first_row.end()),
            (std::vector<std::string>{"0.0098", "0.078", "0.16"}));
  for (const char* line : {"    level", "    40x80", "    6x10"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(SamplingText, SaysWhatWasNotReadAndWhatWasNotReached) {
  SampledLevelProof shared = level({80, 40});
  shared.tap_sets = 0;
  shared.taps_with = 0;
  SampledLevelProof unread = level({20, 10});
  unread.tap_sets = 0;
  unread.taps.problem = "points outside: after: it does not run";
  unread.made.far = 0;
  unread.made.tie = 0;
  const std::string text = describe(proof_of({level({80, 40}), shared, unread}), "  ");
  EXPECT_THAT(text, HasSubstr("as above"));
  EXPECT_THAT(text, HasSubstr("10x20 was not reached: "));
  EXPECT_THAT(text,
              HasSubstr("10x20: taps were not read on points outside: after: it does not run"));
  EXPECT_THAT(text, Not(HasSubstr("40x80 was not reached")));
}

TEST(SamplingText, TellsTheFirstPointThatBreaksAndTheErrors) {
  SamplingProof proof = proof_of({level({80, 40})});
  proof.made_abs = 0.25;
  proof.made_ulp = 3;
  proof.real_abs = 0.5;  // its distance in units is not known
  proof.bytes_before = 75 << 10;
  proof.bytes_after = 2 << 20;
  proof.seconds_before = 0.0005;
  proof.seconds_after = 0.002;
  proof.breaks =
      SamplingBreak{"GridSample 'sample'", 0, "points outside (made)", {-1.5, 0.25}, {-20.5, 24.5}};
  proof.notes = {"one note"};
  const std::string text = describe(proof, "  ");
  EXPECT_THAT(text, HasSubstr("first point that breaks: pixel (-20.5, 24.5), grid (-1.5, 0.25), on "
                              "points outside (made): GridSample 'sample'"));
  EXPECT_THAT(text, HasSubstr("largest error 0.25 (3 ulp) on made points, 0.5 on the first real "
                              "input"));
  EXPECT_THAT(text, HasSubstr("75 KiB before, 2.00 MiB after"));
  EXPECT_THAT(text, HasSubstr("0.5 ms before, 2 ms after"));
  EXPECT_THAT(text, HasSubstr("  one note\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\t'), 0);
}

TEST(SamplingText, WithoutLevelsTheNotesAreAll) {
  SamplingProof proof;
  proof.notes = {"no coordinates were made: the region had 500 nodes"};
  EXPECT_EQ(describe(proof, "  "), "no coordinates were made: the region had 500 nodes\n");
}

}  // namespace
}  // namespace tenonnx
