// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/value_ranges.h"

#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

TEST(ValueRanges, FollowIndicesThroughArithmetic) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,800] x, int64[4] n, bool[1,5] c) => (int64[1,5] labels, int64[4] m)
    <int64[1] k = {5}, int64 classes = {80}, int64 low = {0}, int64 high = {9}, int64 three = {3},
     int64 far = {9223372036854775807}> {
      v, i = TopK (x, k)
      q = Div (i, classes)
      p = Mul (q, classes)
      labels = Sub (i, p)
      r = Mod (i, classes)
      w = Where (c, r, q)
      b = Cast <to = 7> (c)
      f = Cast <to = 7> (v)
      t = Clip (f, low, high)
      m = Mod (n, three)
      o = Add (i, far)
    })");
  const auto ranges = value_ranges(model, infer(model));
  const auto expect = [&](const char* name, std::int64_t low, std::int64_t high) {
    ASSERT_TRUE(ranges.contains(name)) << name;
    EXPECT_EQ(ranges.at(name).low, low) << name;
    EXPECT_EQ(ranges.at(name).high, high) << name;
  };
  expect("i", 0, 799);
  expect("q", 0, 9);
  expect("p", 0, 720);
  expect("labels", -720, 799);  // bounds, not values: i and p are taken apart
  expect("r", 0, 79);
  expect("w", 0, 79);
  expect("b", 0, 1);
  expect("t", 0, 9);
  expect("m", 0, 2);
  EXPECT_FALSE(ranges.contains("f"));  // a float may be anything
  EXPECT_FALSE(ranges.contains("n"));
  EXPECT_FALSE(ranges.contains("o"));  // beyond int64
}

}  // namespace
}  // namespace tenonnx
