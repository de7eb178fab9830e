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

Model graph(int opset, const std::string& attributes, const std::string& inputs) {
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : {}]> g (float[2,3,4] x) => (float[2,3,4] y) "
      "<float[4] s = {{1, -2, 0.5, 3}}, float[4] b = {{0.1, 0.2, -0.3, 0.4}}, "
      "float[3,4] s2 = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6}}> "
      "{{ y = LayerNormalization {} ({}) }}",
      opset, attributes, inputs));
}

TEST(DecomposeLayerNormalization, ThereAndBackAtBothFormsOfReduceMean) {
  for (const int opset : {17, 18}) {
    for (const auto& [attributes, inputs] :
         std::vector<std::pair<std::string, std::string>>{{"<epsilon = 0.001>", "x, s, b"},
                                                          {"", "x, s"},
                                                          {"<axis = 2, epsilon = 0.01>", "x, s, b"},
                                                          {"<axis = -2>", "x, s2"},
                                                          {"<axis = 1>", "x, s2"}}) {
      Model model = graph(opset, attributes, inputs);
      const Model before = model.clone();
      EXPECT_EQ(run_pass(model, "decompose_layer_normalization").applied, 1);
      EXPECT_EQ(op_counts(model)["LayerNormalization"], 0);
      const TensorMap values = {{"x", ramp({2, 3, 4})}};
      expect_within_noise(before, model, values);
      EXPECT_EQ(run_pass(model, "fuse_layer_normalization").applied, 1) << attributes;
      ASSERT_THAT(op_types(model), ElementsAre("LayerNormalization"));
      EXPECT_EQ(attribute_or(model.proto().graph().node(0), "epsilon", 0.0F),
                attribute_or(before.proto().graph().node(0), "epsilon", 1e-5F));
      expect_identical(run_on_cpu(before, values), run_on_cpu(model, values));
    }
  }
}

TEST(DecomposeLayerNormalization, RefusesMeanFloat16AndAnUnknownRank) {
  Model mean = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4] x, float[4] s) => (float[2,4] y, float[2,1] m) {
      y, m = LayerNormalization (x, s, )
    })");
  EXPECT_THAT(first_reason(run_pass(mean, "decompose_layer_normalization")),
              HasSubstr("its output 'm' is used"));
  Model half = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float16[2,4] x, float16[4] s) => (float16[2,4] y) { y = LayerNormalization (x, s) })");
  EXPECT_THAT(first_reason(run_pass(half, "decompose_layer_normalization")),
              HasSubstr("'x' is float16"));
}

TEST(DecomposeLayerNormalization, TheExampleComputesTheSame) {
  Model model = folded_example();
  const Model before = model.clone();
  EXPECT_EQ(run_pass(model, "decompose_layer_normalization").applied, 3);
  expect_same_scores(before, model);
}

}  // namespace
}  // namespace tenonnx
