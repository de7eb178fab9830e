// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

class SelectPieces : public testing::Test {
 protected:
  SelectPieces() {
    const std::vector<std::string> names = {"/0/mlp/Mul", "/0/mlp/down_proj/MatMul", "/1/mlp/Mul",
                                            "/1/mlp/up_proj/MatMul", ""};
    for (int i = 0; i < 5; ++i)
      model_.mutable_proto().mutable_graph()->mutable_node(i)->set_name(
          names[static_cast<std::size_t>(i)]);
  }
  // Its label, or the error.
  std::string node(const std::string& name) const {
    const GraphIndex index(model_.proto().graph());
    const auto pieces = select_pieces(index, {.node = name});
    return pieces.ok() ? pieces->front().label : pieces.status().message();
  }
  Model model_ = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4, 4] x) => (float[4, 4] y) <float k = {2}> {
      b0_mul = Mul(x, k)
      b0_out = MatMul(b0_mul, x)
      b1_mul = Mul(b0_out, k)
      b1_out = MatMul(b1_mul, x)
      y = Relu(b1_out)
    })");
};

TEST_F(SelectPieces, ANodeByAnEndThatOnlyOneHas) {
  EXPECT_EQ(node("/0/mlp/Mul"), "Mul '/0/mlp/Mul'");
  EXPECT_EQ(node("down_proj/MatMul"), "MatMul '/0/mlp/down_proj/MatMul'");
  EXPECT_EQ(node("b1_mul"), "Mul '/1/mlp/Mul'") << "what it makes";
  EXPECT_THAT(node("0_mul"), HasSubstr("the model has no node")) << "in the middle of a word";
}

TEST_F(SelectPieces, AnEndOfSeveralIsAnErrorThatListsThem) {
  EXPECT_EQ(node("mlp/Mul"),
            "'mlp/Mul' is the end of the names of 2 nodes, or of what they make: Mul '/0/mlp/Mul', "
            "Mul '/1/mlp/Mul'; give a longer one");
}

TEST_F(SelectPieces, WhatNoNodeMakes) {
  for (const char* name : {"x", "k"})
    EXPECT_THAT(node(name), HasSubstr("is an input or a constant of the model")) << name;
}

TEST_F(SelectPieces, WhatContainsTheTextIsSuggested) {
  EXPECT_THAT(node("down_proj"),
              HasSubstr("the model has no node 'down_proj'; near it: '/0/mlp/down_proj/MatMul'"));
  // A node without a name is suggested by what it makes.
  EXPECT_THAT(node("z"), HasSubstr("near it: 'y'"));
}

}  // namespace
}  // namespace tenonnx
