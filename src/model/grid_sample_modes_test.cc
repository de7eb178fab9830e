// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/grid_sample_modes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

TEST(GridSampleModes, AreSpelledByTheOpset) {
  EXPECT_EQ(spelled_for_opset("linear", 19), "bilinear");
  EXPECT_EQ(spelled_for_opset("bicubic", 20), "cubic");
  EXPECT_EQ(spelled_for_opset("Bilinear", 20), "linear");
  EXPECT_EQ(spelled_for_opset("nearest", 16), "nearest");
  EXPECT_EQ(spelled_for_opset("lanczos", 20), "");
}

TEST(GridSampleModes, TheFirstMisspelledOneIsNamedAndAllAreMended) {
  Model model = parse_model(R"(<ir_version: 8, opset_import: ["" : 17, "other" : 1]>
    g (float[1,1,4,4] x, float[1,2,2,2] p)
      => (float[1,1,2,2] a, float[1,1,2,2] b, float[1,1,2,2] c, float[1,1,2,2] d) {
      a = GridSample (x, p)
      b = GridSample <mode = "linear"> (x, p)
      c = GridSample <mode = "lanczos"> (x, p)
      d = other.GridSample <mode = "linear"> (x, p) })");
  const auto found = misspelled_mode(model);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->is_a_mode);
  EXPECT_EQ(found->what,
            "GridSample (makes 'b') has the mode 'linear', which opset 17 spells 'bilinear' (1 "
            "more)");
  EXPECT_EQ(spell_modes(model), 1);
  const auto left = misspelled_mode(model);
  ASSERT_TRUE(left.has_value());
  EXPECT_FALSE(left->is_a_mode);
  EXPECT_THAT(left->what, testing::HasSubstr("'lanczos', which no opset has"));
}

}  // namespace
}  // namespace tenonnx
