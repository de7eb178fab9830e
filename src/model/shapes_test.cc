// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "model/shapes.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <chrono>

#include "model/parse_for_test.h"
#include "model/tensor_proto.h"

namespace tenonnx {
namespace {

TEST(Shapes, PropagatesValues) {
  // Shape -> Gather -> Concat -> Reshape, as exporters write it.
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[2,8,4,4] x) => (float[n,c,m] y) <int64[1] zero = {0}, int64[2] rest = {8, -1}> {
      s = Shape (x)
      b = Gather <axis = 0> (s, zero)
      t = Concat <axis = 0> (b, rest)
      r = Reshape (x, t)
      y = Relu (r) })");
  const TensorInfos infos = infer_shapes(model);
  EXPECT_EQ(infos.at("r").shape, (Shape{2, 8, 16}));
  EXPECT_EQ(infos.at("y").shape, (Shape{2, 8, 16})) << "wins over the recorded symbols";
  EXPECT_EQ(infos.at("t").dtype, DType::kInt64);
  EXPECT_EQ(infos.at("rest").shape, (Shape{2}));
}

TEST(Shapes, UnknownDomainsEndItThereOnly) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20, "com.acme" : 1,
                                                                     "com.microsoft" : 1]>
    g (float[2] x) => (float[2] y, float[2] z) {
      a = com.acme.Warp (x)
      b = Relu (a)
      y = Relu (x)
      m = com.microsoft.Gelu (x)
      z = Add (b, m) })");
  const TensorInfos infos = infer_shapes(model);
  EXPECT_FALSE(infos.contains("a"));
  EXPECT_FALSE(infos.contains("b"));
  EXPECT_EQ(infos.at("y").shape, (Shape{2}));
  EXPECT_EQ(infos.at("z").shape, (Shape{2}));
}

TEST(Shapes, InconsistentNodesDoNotFail) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x, float[4,5] w) => (float[9] y) {
      p = Relu (x)
      q = MatMul (x, w)
      y = Relu (q) })");
  const TensorInfos infos = infer_shapes(model);
  EXPECT_EQ(infos.at("p").shape, (Shape{2, 3}));
}

TEST(Shapes, LargeInitializersKeepTheirTypes) {
  onnx::ModelProto proto = parse_proto(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[1,64] x) => (float[1,128] y) <float[1] w = {0}> {
      k = Constant <value = float[1] {0}> ()
      h = MatMul (x, w)
      y = Add (h, k) })");
  *proto.mutable_graph()->mutable_initializer(0) =
      to_tensor_proto(Tensor(DType::kFloat32, {64, 128}), "w");
  *proto.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t() =
      to_tensor_proto(Tensor(DType::kFloat32, {32, 1, 128}), "");
  const auto model = Model::from_proto(proto);
  const TensorInfos infos = infer_shapes(*model);
  EXPECT_EQ(infos.at("w").shape, (Shape{64, 128}));
  EXPECT_EQ(infos.at("k").shape, (Shape{32, 1, 128}));
  EXPECT_EQ(infos.at("h").shape, (Shape{1, 128}));
  EXPECT_EQ(model->proto().graph().node_size(), 3) << "the model itself is as it was";
}

// Before the guard each of these took as many messages as the vector claims to have elements.
TEST(Shapes, VectorsThatAreNoShapesTakeNoMemory) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[4000000000] w, int64[1] i, int64[4000000000] s, float[1] x) => (float[1] y) {
      a = Gather (w, i)
      c = Cast <to = 7> (w)
      r = Reshape (x, s)
      o = ConstantOfShape (s)
      y = Relu (a) })");
  const TensorInfos infos = infer_shapes(model);
  EXPECT_EQ(infos.at("y").shape, (Shape{1}));
  EXPECT_EQ(infos.at("c").shape, (Shape{4000000000}));
}

// onnx 1.21 reads beyond the kernel's dimensions here.
TEST(Shapes, KernelsOfAnotherRankAreLeftOut) {
  const Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[1,3,8,8] x, float[3,3,3] w, float[3] v, float[3,3,3,3] good) => (float[9] y) {
      a = Conv (x, w)
      b = Conv (x, v)
      c = ConvTranspose (x, v)
      d = Conv (x, good)
      y = Relu (a) })");
  const TensorInfos infos = infer_shapes(model);
  EXPECT_FALSE(infos.contains("a"));
  EXPECT_FALSE(infos.contains("b"));
  EXPECT_EQ(infos.at("d").shape, (Shape{1, 3, 6, 6}));
}

TEST(Shapes, EveryTypeOfTheExampleIsKnown) {
  const auto path =
      std::filesystem::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx";
  const auto model = Model::load(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto begin = std::chrono::steady_clock::now();
  const TensorInfos infos = infer_shapes(*model);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  // 0.1 s on one idle core; the rest is room for busy machines and sanitizers.
  EXPECT_LT(seconds.count(), 10);
  int unknown = 0;
  for (const auto& node : model->proto().graph().node())
    for (const auto& output : node.output()) unknown += !infos.contains(output);
  EXPECT_EQ(unknown, 0);
  const auto& feature = infos.at("/model/model/encoder/fpn_blocks.1/conv2/activation/Mul_output_0");
  EXPECT_EQ(feature.dtype, DType::kFloat32);
  // The pads of the raw export are computed by chains that only constant folding can follow: height
  // and width stay unknown behind them.
  EXPECT_EQ(feature.shape.size(), 4u);
  EXPECT_EQ(infos.at("images").shape, (Shape{1, 3, 160, 160}));
}

TEST(Shapes, OfSomeTensorsIsTheSameAsOfAll) {
  const auto path =
      std::filesystem::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx";
  const auto model = Model::load(path);
  const TensorInfos all = infer_shapes(*model);
  const std::string name = "/model/model/encoder/pan_blocks.1/conv2/activation/Mul_output_0";
  const TensorInfos some = infer_shapes(*model, {name});
  EXPECT_LT(some.size(), all.size() / 2);
  ASSERT_TRUE(some.contains(name));
  for (const auto& [tensor, info] : some) {
    EXPECT_EQ(info.dtype, all.at(tensor).dtype) << tensor;
    EXPECT_EQ(info.shape, all.at(tensor).shape) << tensor;
  }
}

TEST(Shapes, AnnotatingKeepsSymbols) {
  Model model = parse_model(R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[batch,3] x) => (float[batch,3] y) { h = Relu (x) y = Relu (h) })");
  ASSERT_TRUE(annotate_shapes(model).ok());
  ASSERT_EQ(model.proto().graph().value_info_size(), 1);
  const auto& info = model.proto().graph().value_info(0);
  EXPECT_EQ(info.name(), "h");
  EXPECT_EQ(info.type().tensor_type().shape().dim(0).dim_param(), "batch");
}

}  // namespace
}  // namespace tenonnx
