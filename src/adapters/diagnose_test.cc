// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "adapters/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "adapters/sim.h"
#include "eval/shapes.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::from<float>(DType::kFloat32, std::move(shape), values);
}

// float16 that overflows to infinity.
Device plain_float16() {
  Device device;
  device.name = "toy";
  device.arithmetic.emplace();
  device.arithmetic->storage = DType::kFloat16;
  device.arithmetic->round_inputs = device.arithmetic->round_weights =
      device.arithmetic->round_outputs = true;
  return device;
}

Device htp() {
  auto device = find_device("htp-v73");
  EXPECT_TRUE(device.ok()) << device.status().message();
  return device.ok() ? std::move(device).value() : Device();
}

TEST(FirstBeyondRange, NamesTheFirstOfSeveral) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) <float[1] k = {1000}> {
      a = Mul (x, k)
      b = Mul (a, k)
      c = Mul (b, k)
      y = Sigmoid (c)
    })");
  const TensorMap inputs = {{"x", floats({2}, {0.5F, -0.2F})}};
  const auto found = first_beyond_range(model, inputs, htp());
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->tensor, "b");
  EXPECT_EQ((*found)->op_type, "Mul");
  EXPECT_EQ((*found)->node, "Mul 'node_1'");
  EXPECT_EQ((*found)->max_abs, 500000);
  EXPECT_EQ((*found)->limit, 131008);
  EXPECT_EQ((*found)->beyond, 2);
  EXPECT_EQ((*found)->count, 2);
  EXPECT_THAT(to_string(**found), AllOf(HasSubstr("'b' of Mul 'node_1' reaches 500000"),
                                        HasSubstr("131008 as an element-wise result")));
  EXPECT_FALSE(first_beyond_range(model, {{"x", floats({2}, {1e-5F, 0})}}, htp())->has_value());
}

// What an element-wise result keeps, the operand of a product does not.
TEST(FirstBeyondRange, OperandsHaveALimitOfTheirOwn) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2] x) => (float[1,1] y, float[1,2] z)
    <float[2,1] w = {0.001, 0.001}, float[1] k = {100}> {
      z = Mul (x, k)
      y = MatMul (z, w)
    })");
  const auto found = first_beyond_range(model, {{"x", floats({1, 2}, {1000, 1})}}, htp());
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->tensor, "z");
  EXPECT_EQ((*found)->limit, 65504);
  EXPECT_EQ((*found)->limit_of, "an operand of MatMul 'node_1'");
}

TEST(FirstBeyondRange, InputsCount) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { y = Sigmoid (x) })");
  const auto found = first_beyond_range(model, {{"x", floats({2}, {1e6F, 1})}}, htp());
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->node, "input 'x'");
}

// Anchors of infinity and masks such as -1e9 are what the model means.
TEST(FirstBeyondRange, MaskedConstantsAreNone) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[3] x, bool[3] valid) => (float[3] y, float[3] z) <float[1] mask = {-1e9}, float[1] inf = {1}> {
      a = Where (valid, x, mask)
      y = Softmax (a)
      b = Where (valid, x, inf)
      z = Sigmoid (b)
    })");
  onnx::ModelProto proto = model.proto();
  proto.mutable_graph()->mutable_initializer(1)->clear_raw_data();
  proto.mutable_graph()->mutable_initializer(1)->clear_float_data();
  proto.mutable_graph()->mutable_initializer(1)->add_float_data(kInf);
  const auto masked = Model::from_proto(std::move(proto));
  ASSERT_TRUE(masked.ok()) << masked.status().message();
  const TensorMap inputs = {{"x", floats({3}, {1, 2, 3})},
                            {"valid", Tensor::from<std::uint8_t>(DType::kBool, {3}, {1, 0, 1})}};
  const auto found = first_beyond_range(*masked, inputs, htp());
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_FALSE(found->has_value()) << to_string(**found);
  const Device device = plain_float16();
  const auto executor = make_sim_executor(device);
  ASSERT_TRUE(executor.ok());
  // -1e9 becomes -Inf there, where the reference is finite: that is the first such tensor.
  const auto broken = first_non_finite(*masked, inputs, *make_cpu_executor(), **executor);
  ASSERT_TRUE(broken.ok()) << broken.status().message();
  ASSERT_TRUE(broken->has_value());
  EXPECT_EQ((*broken)->tensor, "a");
}

TEST(FirstNonFinite, NamesTheFirstWhereTheReferenceIsFinite) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) <float[1] k = {1000}> {
      a = Mul (x, k)
      b = Mul (a, k)
      y = Sub (b, b)
    })");
  const auto executor = make_sim_executor(plain_float16());
  ASSERT_TRUE(executor.ok());
  const auto cpu = make_cpu_executor();
  auto found = first_non_finite(model, {{"x", floats({2}, {0.5F, 0.01F})}}, *cpu, **executor);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->tensor, "b");
  EXPECT_EQ((*found)->infinite, 1);
  EXPECT_EQ((*found)->nan, 0);
  EXPECT_EQ((*found)->count, 2);
  EXPECT_THAT(to_string(**found), HasSubstr("'b' of Mul 'node_1' has 1 infinite and 0 NaN of 2"));
  // Infinite in the reference too: not the device's doing.
  found = first_non_finite(model, {{"x", floats({2}, {kInf, 0.01F})}}, *cpu, **executor);
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
}

TEST(FirstBeyondRange, NeedsAnArithmetic) {
  const Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { y = Relu (x) })");
  EXPECT_EQ(first_beyond_range(model, {{"x", floats({2}, {1, 2})}}, Device()).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(*explain_failure(model, {{"x", floats({2}, {1, 2})}}, "cpu"), "");
  EXPECT_EQ(*explain_failure(model, {{"x", floats({2}, {1, 2})}}, "sim:htp-v73"), "");
}

// The example made fragile: each decoder layer's up-projection times 2^13. In float64 the product
// before layer 0's down-projection reaches about 280,530 on the first held-out image; float32 is
// within 1e-5 of that.
TEST(FirstBeyondRange, TheFragileExample) {
  const fs::path path =
      fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2_fragile.onnx";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is not there";
  const auto model = Model::load(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const ShapesImage image = make_shapes_image(1000000);
  Tensor images(DType::kFloat32, {1, 3, 160, 160});
  for (std::int64_t i = 0; i < 160 * 160; ++i)
    for (std::int64_t c = 0; c < 3; ++c)
      images.mutable_data<float>()[c * 160 * 160 + i] =
          static_cast<float>(image.rgb[static_cast<std::size_t>(3 * i + c)]) / 255.0F;
  const TensorMap inputs = {
      {"images", images},
      {"orig_target_sizes", Tensor::from<std::int64_t>(DType::kInt64, {1, 2}, {160, 160})}};
  const auto found = first_beyond_range(*model, inputs, htp());
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->tensor, "/model/model/decoder/layers.0/mlp/Mul_output_0");
  EXPECT_EQ((*found)->op_type, "Mul");
  EXPECT_NEAR((*found)->max_abs, 280530, 280530 * 1e-5);
  EXPECT_THAT((*found)->limit_of, HasSubstr("layers.0/mlp/down_proj"));
}

}  // namespace
}  // namespace tenonnx
