// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/rank_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenonnx {
namespace {

using ::testing::ElementsAre;

const Shape kShape = {1, 300, 8, 3, 4, 2};

TEST(RankForms, CutsAreTheElementsBehindThem) {
  EXPECT_THAT(all_cuts(kShape), ElementsAre(2, 8, 24, 192));
  EXPECT_TRUE(all_cuts({1, 1, 7, 1}).empty());
  EXPECT_EQ(form_of(57600, {2, 192}), (Shape{300, 96, 2}));
  EXPECT_EQ(form_of(1, {}), (Shape{1}));
}

TEST(RankForms, AFormKeepsCutsAndInventsNone) {
  EXPECT_TRUE(is_form({300, 96, 2}, kShape, {2, 192}));
  EXPECT_TRUE(is_form({300, 1, 96, 2}, kShape, {2}));
  EXPECT_FALSE(is_form({300, 192}, kShape, {2}));   // 2 is merged
  EXPECT_FALSE(is_form({300, 48, 4}, kShape, {}));  // 4 lies inside a dimension
  EXPECT_FALSE(is_form({300, 96}, kShape, {}));     // other elements
}

TEST(RankForms, AnAxisIsIsolatedAndFoundAgain) {
  Cuts cuts;
  isolate(kShape, 3, cuts);
  EXPECT_THAT(cuts, ElementsAre(8, 24));
  EXPECT_EQ(dimension_of({2400, 3, 8}, kShape, 3), std::size_t{1});
  EXPECT_EQ(dimension_of({2400, 24}, kShape, 3), std::nullopt);
  Cuts last;
  isolate(kShape, 5, last);
  EXPECT_THAT(last, ElementsAre(2));
}

TEST(RankForms, OperandsBroadcastAgainstTheForm) {
  const auto flags = broadcast_flags({12, 1}, {1, 100, 4, 12, 2});
  EXPECT_THAT(flags, ElementsAre(false, false, true, false));
  EXPECT_THAT(flag_cuts(flags, {1, 100, 4, 12, 2}), ElementsAre(2, 24));
  EXPECT_EQ(operand_form(flags, {1, 100, 4, 12, 2}, {400, 12, 2}), (Shape{12, 1}));
  const auto boxes = broadcast_flags({1, 100, 1, 1, 2}, {1, 100, 4, 12, 2});
  EXPECT_EQ(operand_form(boxes, {1, 100, 4, 12, 2}, {100, 48, 2}), (Shape{100, 1, 2}));
}

TEST(RankForms, BroadcastCopies) {
  const Tensor t = Tensor::from<float>(DType::kFloat32, {2, 1}, {1, 2});
  const Tensor wide = broadcast_to(t, {2, 2, 3});
  std::vector<float> values(wide.data<float>(), wide.data<float>() + wide.size());
  EXPECT_THAT(values, ElementsAre(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
}

}  // namespace
}  // namespace tenonnx
