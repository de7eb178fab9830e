// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// What differs from float16; the transform itself is tested in sim_float16_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/tensor_proto.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;

TEST(SimBFloat16, WeightsKeepEightSignificantBits) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y) <float[4] w = {0, 0, 0, 0}> { y = Mul (x, w) })");
  *model.mutable_proto().mutable_graph()->mutable_initializer(0) = to_tensor_proto(
      Tensor::from<float>(DType::kFloat32, {4}, {1.00390625F, 1.01171875F, 70000, 1e-40F}), "w");
  run_pass(model, "sim_bfloat16");
  EXPECT_THAT(op_types(model), ElementsAre("Round", "Mul", "Round"));
  EXPECT_EQ(attribute_or(model.proto().graph().node(2), "storage", ""), "bfloat16");
  const auto w = model.initializer("w");
  ASSERT_TRUE(w.ok());
  EXPECT_EQ(w->data<float>()[0], 1.0F);                // 1 + 2^-8: a tie, to even
  EXPECT_EQ(w->data<float>()[1], 1.015625F);           // 1 + 3 * 2^-8: a tie, to even
  EXPECT_EQ(w->data<float>()[2], 70144.0F);            // 137 * 2^9: within the range
  EXPECT_NEAR(w->data<float>()[3], 1e-40F, 0x1p-134);  // half a step of the subnormals
}

}  // namespace
}  // namespace tenonnx
