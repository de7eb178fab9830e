// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "bench/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_directory.h"
#include "ort/test_models.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// Three segments; the last takes a tensor of the first and one of the second.
class SegmentChainTest : public testing::Test {
 protected:
  void SetUp() override {
    add("first", R"(g (float[2] x) => (float[2] a, float[2] b) { a = Add (x, x) b = Neg (x) })");
    add("second", R"(g (float[2] a) => (float[2] c) { c = Mul (a, a) })");
    add("third", R"(g (float[2] b, float[2] c, float[2] bias) => (float[2] y) {
                     s = Add (b, c) y = Add (s, bias) })");
    inputs_["x"] = Tensor::from<float>(DType::kFloat32, {2}, {1, 2});
    inputs_["bias"] = Tensor::from<float>(DType::kFloat32, {2}, {100, 100});
  }
  void add(const std::string& name, const std::string& graph) {
    const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]> )" + graph);
    ASSERT_TRUE(model.save(root_ / (name + ".onnx")).ok());
    Segment segment;
    segment.name = name;
    segment.file = name + ".onnx";
    segment.executor = "cpu";
    manifest_.segments.push_back(segment);
  }
  TemporaryDirectory directory_;
  const fs::path& root_ = directory_.path();
  Manifest manifest_;
  TensorMap inputs_;
};

TEST_F(SegmentChainTest, RunsInOrderAndKnowsItsBoundaries) {
  auto chain = SegmentChain::load(root_, manifest_, {}, inputs_);
  ASSERT_TRUE(chain.ok()) << chain.status().message();
  ASSERT_EQ(chain->size(), 3u);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < chain->size(); ++i) {
      const Status status = chain->run(i);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    // y = -x + (2x)^2 + 100
    const Tensor& y = chain->outputs(2)[0];
    EXPECT_EQ(y.data<float>()[0], -1 + 4 + 100);
    EXPECT_EQ(y.data<float>()[1], -2 + 16 + 100);
  }
  const auto boundaries = chain->boundaries();
  ASSERT_EQ(boundaries.size(), 3u);
  EXPECT_EQ(boundaries[0].from, 0);
  EXPECT_EQ(boundaries[0].to, 1);
  EXPECT_THAT(boundaries[0].tensors, ElementsAre("a"));
  EXPECT_EQ(boundaries[1].to, 2);
  EXPECT_THAT(boundaries[1].tensors, ElementsAre("b"));
  EXPECT_THAT(boundaries[2].tensors, ElementsAre("c"));
  EXPECT_EQ(boundaries[2].bytes, 8u);
  for (const Boundary& boundary : boundaries) chain->copy(boundary);
  EXPECT_GT(chain->load_ms(0), 0);
  EXPECT_EQ(chain->executor(1), "cpu");
  EXPECT_THAT(chain->description(1), HasSubstr("onnxruntime"));
}

TEST_F(SegmentChainTest, OutputsOfTheRunBeforeAreWrittenIntoAgain) {
  auto chain = SegmentChain::load(root_, manifest_, {}, inputs_);
  ASSERT_TRUE(chain.ok()) << chain.status().message();
  ASSERT_TRUE(chain->run(0).ok());
  const void* first = chain->outputs(0)[0].raw();
  ASSERT_TRUE(chain->run(0).ok());
  EXPECT_EQ(chain->outputs(0)[0].raw(), first);
}

TEST_F(SegmentChainTest, InputThatNobodyMakes) {
  inputs_.erase("bias");
  const auto chain = SegmentChain::load(root_, manifest_, {}, inputs_);
  ASSERT_FALSE(chain.ok());
  EXPECT_THAT(chain.status().message(), HasSubstr("segment 'third' takes 'bias'"));
}

TEST_F(SegmentChainTest, SegmentOutsideOfThePackage) {
  manifest_.segments[1].file = "../second.onnx";
  EXPECT_FALSE(SegmentChain::load(root_, manifest_, {}, inputs_).ok());
}

}  // namespace
}  // namespace tenonnx
