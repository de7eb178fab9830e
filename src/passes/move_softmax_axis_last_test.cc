// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/fusion_test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Model graph(int opset, const std::string& node, const std::string& shape = "2,3,4,5") {
  return model_from_text(fmt::format(
      "<ir_version: 7, opset_import: [\"\" : {}]> g (float[{}] x) => (float[{}] y) {{ {} }}", opset,
      shape, shape, node));
}

TEST(MoveSoftmaxAxisLast, TransposesFromOpset13On) {
  for (const std::string op : {"Softmax", "LogSoftmax"}) {
    for (const int axis : {0, 1, 2, -2, -4}) {
      Model model = graph(13, fmt::format("y = {} <axis = {}> (x)", op, axis));
      const Model before = model.clone();
      EXPECT_EQ(run_pass(model, "move_softmax_axis_last").applied, 1);
      ASSERT_THAT(op_types(model), ElementsAre("Transpose", op, "Transpose"));
      const TensorMap inputs = {{"x", ramp({2, 3, 4, 5})}};
      expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
      EXPECT_EQ(run_pass(model, "move_softmax_axis_last").applied, 0);
    }
  }
}

TEST(MoveSoftmaxAxisLast, FlattensBeforeOpset13) {
  for (const int opset : {10, 11, 12}) {
    for (const std::string attributes : {"", "<axis = 0>", "<axis = 2>"}) {  // the default is 1
      Model model = graph(opset, fmt::format("y = Softmax {} (x)", attributes));
      const Model before = model.clone();
      EXPECT_EQ(run_pass(model, "move_softmax_axis_last").applied, 1);
      ASSERT_THAT(op_types(model), ElementsAre("Reshape", "Softmax", "Reshape"));
      const TensorMap inputs = {{"x", ramp({2, 3, 4, 5})}};
      expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
      EXPECT_EQ(run_pass(model, "move_softmax_axis_last").applied, 0);
    }
  }
}

TEST(MoveSoftmaxAxisLast, ReshapesWhereNothingButOnesIsBehindTheAxis) {
  Model model = graph(13, "y = Softmax <axis = 1> (x)", "2,3,1,1");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "move_softmax_axis_last").applied, 1);
  ASSERT_THAT(op_types(model), ElementsAre("Reshape", "Softmax", "Reshape"));
  const TensorMap inputs = {{"x", ramp({2, 3, 1, 1})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
}

TEST(MoveSoftmaxAxisLast, DynamicDimensionsBeforeTheAxis) {
  Model model = graph(12, "y = Softmax <axis = 2> (x)", "N,M,4,5");
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "move_softmax_axis_last").applied, 1);
  const TensorMap inputs = {{"x", ramp({2, 3, 4, 5})}};
  expect_identical(run_on_cpu(before, inputs), run_on_cpu(model, inputs));
  Model refused = graph(12, "y = Softmax <axis = 1> (x)", "2,M,4,5");
  EXPECT_THAT(first_reason(run_pass(refused, "move_softmax_axis_last")),
              HasSubstr("before opset 13 it normalises over all axes from 1 on"));
}

TEST(MoveSoftmaxAxisLast, LeavesTheLastAxis) {
  for (const auto& [opset, node] :
       std::vector<std::pair<int, std::string>>{{13, "y = Softmax (x)"},
                                                {13, "y = Softmax <axis = 3> (x)"},
                                                {11, "y = Softmax <axis = 3> (x)"}}) {
    Model model = graph(opset, node);
    const PassOutcome outcome = run_pass(model, "move_softmax_axis_last");
    EXPECT_EQ(outcome.applied, 0);
    EXPECT_THAT(outcome.skipped, IsEmpty());
  }
}

// Axis 1 of rank 2 (the distributions of the boxes' edges) is the last one.
TEST(MoveSoftmaxAxisLast, TheExampleHasNone) {
  Model model = folded_example();
  const PassOutcome outcome = run_pass(model, "move_softmax_axis_last");
  EXPECT_EQ(op_counts(model)["Softmax"], 14);
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_THAT(outcome.skipped, IsEmpty());
}

}  // namespace
}  // namespace tenonnx
