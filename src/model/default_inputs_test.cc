// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/default_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <vector>

namespace tenonnx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

onnx::ModelProto example(int ir) {
  onnx::ModelProto model;
  model.set_ir_version(ir);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const char* name : {"a", "w", "b", "s", "c"}) graph.add_input()->set_name(name);
  for (const char* name : {"w", "k"}) graph.add_initializer()->set_name(name);
  graph.add_sparse_initializer()->mutable_values()->set_name("s");
  return model;
}

std::vector<std::string> inputs(const onnx::ModelProto& model) {
  std::vector<std::string> names;
  for (const auto& input : model.graph().input()) names.push_back(input.name());
  return names;
}

TEST(DefaultInputs, AreThoseOfIr4AndLater) {
  const onnx::ModelProto now = example(8), then = example(3);
  EXPECT_THAT(default_inputs(now), UnorderedElementsAre("w", "s"));
  EXPECT_THAT(default_inputs(then), IsEmpty());
}

TEST(DefaultInputs, PinnedLeaveTheOthersInOrder) {
  onnx::ModelProto model = example(8);
  EXPECT_EQ(pin_default_inputs(model), 2);
  EXPECT_THAT(inputs(model), ElementsAre("a", "b", "c"));
  EXPECT_EQ(model.graph().initializer_size(), 2);
  EXPECT_EQ(pin_default_inputs(model), 0);
}

}  // namespace
}  // namespace tenonnx
