// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "ort/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ort/test_models.h"

namespace tenonnx {
namespace {

using ::testing::ElementsAre;

TEST(PlanWindows, FillsUpToTheLimitAndGivesALargeTensorItsOwn) {
  const std::vector<std::int64_t> bytes = {3, 3, 4, 20, 1, 9, 1};
  std::vector<std::pair<std::size_t, std::size_t>> got;
  for (const Window& window : plan_windows(bytes, 10)) got.emplace_back(window.begin, window.end);
  EXPECT_THAT(got, ElementsAre(std::pair(0, 3), std::pair(3, 4), std::pair(4, 6), std::pair(6, 7)));
  EXPECT_TRUE(plan_windows({}, 10).empty());
}

TEST(ComputedTensors, AreThoseThatNodesMakeAndSomethingUses) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x) => (float[2,3] y) {
      k = Constant <value = float[1] {2}> ()
      a = Mul (x, k)
      unused = Neg (a)
      s = Shape (a)
      b = Reshape (a, s)
      y = Relu (b)
    })");
  const GraphIndex index(model.proto().graph());
  std::vector<std::string> names;
  std::vector<std::int64_t> bytes;
  for (const ComputedTensor& tensor : computed_tensors(model, index)) {
    names.push_back(tensor.name);
    bytes.push_back(tensor.bytes);
  }
  EXPECT_THAT(names, ElementsAre("a", "s", "b", "y"));
  EXPECT_THAT(bytes, ElementsAre(24, 16, 24, 24));
}

TEST(LoadWithOutputs, GivesInnerTensors) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, float[4] z) => (float[4] y) {
      a = Neg (x)
      b = Add (a, z)
      y = Relu (b)
    })");
  const auto loaded = load_with_outputs(*make_cpu_executor(), model, {"a"}, {});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  // The inputs stay, whether or not they are needed.
  const Tensor values = Tensor::from<float>(DType::kFloat32, {4}, {-1, 0, 2, 3});
  const TensorMap all = {{"x", values}, {"z", values}, {"other", values}};
  const auto out = (*loaded)->run(inputs_of(**loaded, all));
  ASSERT_TRUE(out.ok()) << out.status().message();
  ASSERT_EQ(out->size(), 1U);
  EXPECT_EQ(out->at("a").data<float>()[0], 1.0F);
}

}  // namespace
}  // namespace tenonnx
