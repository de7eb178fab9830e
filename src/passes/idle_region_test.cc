// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/idle_region.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

// Of `a = NODE`, where all that reads it reads x now.
bool gave(const std::string& node, const Shape& shape = {2, 3}) {
  const auto graph = [](const std::string& nodes) {
    return model_from_text(
        fmt::format("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,3] i) => (float[2,3] y) "
                    "<float zero = "
                    "{{0}}, float[3] zeros = {{0,0,0}}, float minus = {{-0.0}}, float one = {{1}}, "
                    "float[1,3] ones "
                    "= {{1,1,1}}, float[3] other = {{1,1,1.0000001}}, float[4,1,1] more = "
                    "{{1,1,1,1}}> {{ x = Neg "
                    "(i) {} }}",
                    nodes));
  };
  const Model before = graph(node + "y = Relu (a)"), after = graph("y = Relu (x)");
  const auto diff = diff_graphs(before, after, {{"a", "x"}}, "test");
  EXPECT_TRUE(diff.ok()) << diff.status().message();
  EXPECT_EQ(diff->regions.size(), 1U);
  return gave_its_input(before, GraphIndex(before.proto().graph()), diff->regions[0], shape);
}

TEST(IdleRegion, AdditionsOfZeroAndMultiplicationsByOne) {
  for (const char* node :
       {"a = Add (x, zero) ", "a = Add (zeros, x) ", "a = Sub (x, zero) ", "a = Add (x, minus) ",
        "a = Mul (x, one) ", "a = Mul (ones, x) ", "a = Div (x, ones) "})
    EXPECT_TRUE(gave(node)) << node;
}

TEST(IdleRegion, NothingElse) {
  for (const char* node :
       {"a = Sub (zero, x) ", "a = Div (one, x) ", "a = Mul (x, zero) ", "a = Mul (x, other) ",
        "a = Add (x, one) ", "a = Add (x, x) ", "a = Pow (x, one) ", "a = Mul (x, more) "})
    EXPECT_FALSE(gave(node)) << node;
}

TEST(IdleRegion, NotWhereSomethingIsLeft) {
  const auto graph = [](const std::string& nodes) {
    return model_from_text(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,3] x) => (float[2,3] y) "
        "<float one = {1}> { " +
        nodes + " }");
  };
  const Model before = graph("a = Mul (x, one) y = Relu (a)"),
              after = graph("a = Neg (x) y = Relu (a)");
  const auto diff = diff_graphs(before, after, {}, "test");
  ASSERT_TRUE(diff.ok()) << diff.status().message();
  ASSERT_EQ(diff->regions.size(), 1U);
  EXPECT_FALSE(
      gave_its_input(before, GraphIndex(before.proto().graph()), diff->regions[0], Shape{2, 3}));
}

}  // namespace
}  // namespace tenonnx
