// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/rounding_region.h"

#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

bool rounds(const std::string& before, const std::string& after) {
  const auto graph = [](const std::string& nodes) {
    return model_from_text(fmt::format(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,3] x) => (float[?,?] y) "
        "<float zero = {{0}}, float[3] ones = {{1,1,1}}, float two = {{2}}, float six = {{6}}, "
        "int64[2] whole = {{2,3}}, int64[2] flat = {{1,6}}> {{ {} }}",
        nodes));
  };
  const Model was = graph(before), is = graph(after);
  const auto diff = diff_graphs(was, is, {}, "test");
  EXPECT_TRUE(diff.ok()) << diff.status().message();
  EXPECT_EQ(diff->regions.size(), 1U);
  return may_round_otherwise(was, GraphIndex(was.proto().graph()), GraphIndex(is.proto().graph()),
                             diff->regions[0]);
}

TEST(RoundingRegion, MovedElementsAreNot) {
  EXPECT_FALSE(rounds("a = Reshape (x, flat) y = Reshape (a, whole)", "y = Reshape (x, whole)"));
  EXPECT_FALSE(rounds("a = Mul (x, two) b = Transpose (a) y = Transpose (b)",
                      "a1 = Transpose (x) b1 = Transpose (a1) y = Mul (b1, two)"));
}

TEST(RoundingRegion, AConstantWithoutEffectIsNone) {
  EXPECT_FALSE(rounds("a = Add (x, zero) y = Relu (a)", "y = Relu (x)"));
  EXPECT_FALSE(rounds("a = Mul (ones, x) y = Relu (a)", "y = Relu (x)"));
  EXPECT_TRUE(rounds("a = Mul (two, x) y = Relu (a)", "y = Relu (x)"));
}

TEST(RoundingRegion, OtherArithmeticIs) {
  EXPECT_TRUE(rounds("a = Mul (x, two) b = Mul (a, two) y = Mul (b, two)", "y = Mul (x, six)"));
  EXPECT_TRUE(rounds("a = Sigmoid (x) y = Mul (x, a)", "y = Gelu (x)"));
}

}  // namespace
}  // namespace tenonnx
