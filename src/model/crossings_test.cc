// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/crossings.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

TEST(FindCrossings, BetweenGroups) {
  const Model model = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y, float[2] z) {
      one = Constant <value_float = 1.0> ()
      a = Relu (x)
      b = Add (a, one)
      y = Mul (a, b)
      z = Add (y, one)
    })");
  // Constant, Relu | Add | Mul, Add
  const auto crossings = find_crossings(model.proto().graph(), {0, 0, 1, 2, 2});
  ASSERT_EQ(crossings.size(), 5U);
  EXPECT_EQ(crossings[0].tensor, "x");
  EXPECT_EQ(crossings[0].from, -1);
  EXPECT_EQ(crossings[0].to, std::vector<int>({0}));
  EXPECT_EQ(crossings[1].tensor, "a");
  EXPECT_EQ(crossings[1].to, std::vector<int>({1, 2}));
  EXPECT_EQ(crossings[2].tensor, "b");
  EXPECT_EQ(crossings[2].from, 1);
  EXPECT_EQ(crossings[3].tensor, "y");  // read within its group, and an output
  EXPECT_TRUE(crossings[3].to.empty());
  EXPECT_TRUE(crossings[3].is_output);
  EXPECT_EQ(crossings[4].tensor, "z");
}

}  // namespace
}  // namespace tenonnx
