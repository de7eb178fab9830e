// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/block_name.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <filesystem>

#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

// By the names that the example's export has.
TEST(BlockName, OfTheExampleDetector) {
  const auto model = Model::load(std::filesystem::path(TENONNX_TEST_SOURCE_DIR) /
                                 "examples/models/shapes_deimv2.onnx");
  ASSERT_TRUE(model.ok());
  const GraphIndex index(model->proto().graph());
  const auto title = [&](const std::string& tensor) {
    const Value* value = index.find(tensor);
    EXPECT_NE(value, nullptr) << tensor;
    return value == nullptr ? "" : block_name(index, value->producer).title;
  };
  const std::string layer = "/model/model/decoder/layers.1/";
  EXPECT_EQ(title(layer + "mlp/Mul_output_0"), "SwiGLU");
  EXPECT_EQ(title(layer + "mlp/down_proj/MatMul_output_0"), "SwiGLU");
  EXPECT_EQ(title(layer + "self_attn/q_proj/MatMul_output_0"), "self-attention");
  EXPECT_EQ(title(layer + "encoder_attn/attention_weights/MatMul_output_0"), "cross-attention");
  EXPECT_EQ(title(layer + "gateway/gate/MatMul_output_0"), "gate");
  EXPECT_EQ(title("/model/model/decoder/integral/Softmax_output_0"), "FDR integral");
}

// Without names: by what stands behind.
TEST(BlockName, OfAGraphWithoutNames) {
  const Model model = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 40, 8] x, float[8, 8] w) => (float[1, 40, 8] y, int64[1, 5] i) <int64[1] k = {5}> {
  q = MatMul(x, w)
  p = Softmax(q)
  y = Mul(p, x)
  m = ReduceMax <axes = [-1], keepdims = 0>(x)
  v, i = TopK(m, k)
})");
  const GraphIndex index(model.proto().graph());
  EXPECT_EQ(to_string(block_name(index, 0)), "attention");
  EXPECT_EQ(to_string(block_name(index, 3)), "query selection");
  EXPECT_EQ(to_string(block_name(index, 2)), "");
}

TEST(BlockName, TitleAndScope) {
  EXPECT_EQ(to_string(BlockName{"gate", "/decoder/0"}), "gate, '/decoder/0'");
  EXPECT_EQ(to_string(BlockName{"", "/decoder/0"}), "'/decoder/0'");
}

}  // namespace
}  // namespace tenonnx
