// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Also the example of how an operator of our own is written and handed to a session.
#include "ort/custom_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <future>

#include "base/status.h"
#include "ort/library.h"
#include "ort/session.h"
#include "ort/test_models.h"

namespace tenonnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// y = x * factor (attribute, 1 where absent).
struct ScaleKernel {
  ScaleKernel(const OrtApi&, const OrtKernelInfo* info) {
    const Ort::ConstKernelInfo attributes(info);
    try {
      factor = attributes.GetAttribute<float>("factor");
    } catch (const Ort::Exception&) {  // absent
    }
  }
  void Compute(OrtKernelContext* raw) {
    Ort::KernelContext context(raw);
    const auto x = context.GetInput(0);
    const auto shape = x.GetTensorTypeAndShapeInfo();
    auto y = context.GetOutput(0, shape.GetShape());
    for (std::size_t i = 0; i < shape.GetElementCount(); ++i)
      y.GetTensorMutableData<float>()[i] = x.GetTensorData<float>()[i] * factor;
  }
  float factor = 1;
};

struct ScaleOp : Ort::CustomOpBase<ScaleOp, ScaleKernel> {
  void* CreateKernel(const OrtApi& api, const OrtKernelInfo* info) const {
    return new ScaleKernel(api, info);
  }
  const char* GetName() const { return "Scale"; }
  std::size_t GetInputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetInputType(std::size_t) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  }
  std::size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(std::size_t) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  }
  static OrtStatusPtr InferOutputShape(Ort::ShapeInferContext& context) {
    return context.SetOutputShape(0, context.GetInputShape(0)).release();
  }
};

constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17, "tenonnx.test" : 1]>
  g (float[3] x) => (float[3] z) {
    y = tenonnx.test.Scale <factor = 2.5> (x)
    z = Relu (y)
  })";

TEST(CustomOpsTest, OperatorOfOurOwnRunsInOneSession) {
  ASSERT_TRUE(onnxruntime().ok()) << onnxruntime().status().message();
  std::unique_ptr<LoadedGraph> graph;
  {
    auto ops = std::make_shared<CustomOpSet>("tenonnx.test");
    ops->add(std::make_unique<ScaleOp>());
    SessionSetup setup;
    setup.custom_ops.push_back(ops);
    LoadOptions options;
    options.optimization = Optimization::kDisabled;
    auto loaded = load_session(model_from_text(kModel), options, setup);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    graph = std::move(loaded).value();
  }  // the graph alone keeps the operators
  TensorMap inputs;
  inputs["x"] = Tensor::from<float>(DType::kFloat32, {3}, {1, -2, 4});
  const auto outputs = graph->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  const float* z = outputs->at("z").data<float>();
  EXPECT_THAT(std::vector<float>(z, z + 3), ElementsAre(2.5F, 0, 10));
  EXPECT_EQ(graph->outputs()[0].shape, (Shape{3}));
}

TEST(CustomOpsTest, OtherSessionsDoNotKnowIt) {
  const auto graph = make_cpu_executor()->load(model_from_text(kModel), {});
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.status().message(),
              HasSubstr("operator 'Scale' of domain 'tenonnx.test' (node 'node_0') is not known"));
}

// Of many domains, since a session finds those that the other one has added, and adds the rest
// itself: without DomainLock, the two meet at one of them.
TEST(CustomOpsTest, TwoThreadsMayBringTheSameNewDomains) {
  ASSERT_TRUE(onnxruntime().ok()) << onnxruntime().status().message();
  for (int pair = 0; pair < 5; ++pair) {
    std::barrier start(2);
    const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
        g (float[3] x) => (float[3] y) { y = Relu (x) })");
    const auto load = [&] {
      SessionSetup setup;
      for (int d = 0; d < 2000; ++d) {
        auto ops = std::make_shared<CustomOpSet>(fmt::format("tenonnx.test.{}.{}", pair, d));
        ops->add(std::make_unique<ScaleOp>());
        setup.custom_ops.push_back(std::move(ops));
      }
      LoadOptions options;
      options.intra_op_threads = 1;
      start.arrive_and_wait();
      return load_session(model, options, setup).status();
    };
    auto other = std::async(std::launch::async, load);
    const Status mine = load(), theirs = other.get();
    EXPECT_TRUE(mine.ok()) << mine.message();
    EXPECT_TRUE(theirs.ok()) << theirs.message();
  }
}

}  // namespace
}  // namespace tenonnx
