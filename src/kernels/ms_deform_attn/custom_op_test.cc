// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The operator as ONNX Runtime runs it, from libtenonnx_ops.so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/ms_deform_attn/ms_deform_attn.h"
#include "ort/executor.h"
#include "ort/test_models.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

struct Types {
  const char *value, *coordinates;
};

// Sizes of two levels, 3 and 2 points, 2 heads of 5 channels.
constexpr const char* kCall = "<points = [3, 2], spatial_shapes = [4, 3, 2, 2]> (v, l, w)";
const Shape kValue = {2, 16, 2, 5}, kLocations = {2, 7, 2, 5, 2}, kWeights = {2, 7, 2, 5};

class MSDeformAttnOperator : public testing::Test {
 protected:
  void SetUp() override { setenv("TENONNX_OPS", TENONNX_TEST_OPS_LIBRARY, 1); }

  static Result<TensorMap> run(const std::string& inputs, const std::string& call,
                               const TensorMap& given, const char* out = "float[b, q, c] y") {
    const std::string text = "<ir_version: 8, opset_import: [\"\" : 17, \"tenonnx\" : 1]> g (" +
                             inputs + ") => (" + out + ") { y = tenonnx.MSDeformAttn " + call +
                             " }";
    auto graph = make_cpu_executor()->load(model_from_text(text), {});
    if (!graph.ok()) return graph.status();
    return (*graph)->run(given);
  }

  static Tensor tensor(const char* type, const Shape& shape, std::mt19937& random) {
    std::int64_t count = 1;
    for (const std::int64_t d : shape) count *= d;
    std::uniform_real_distribution<float> uniform(0, 1);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& v : values) v = uniform(random);
    if (std::string_view(type) == "float") {
      Tensor out(DType::kFloat32, shape);
      std::copy(values.begin(), values.end(), out.mutable_data<float>());
      return out;
    }
    Tensor out(std::string_view(type) == "float16" ? DType::kFloat16 : DType::kBFloat16, shape);
    auto* bits = static_cast<std::uint16_t*>(out.mutable_raw());
    for (std::size_t i = 0; i < values.size(); ++i)
      bits[i] = out.dtype() == DType::kFloat16 ? float_to_float16(values[i])
                                               : float_to_bfloat16(values[i]);
    return out;
  }

  static TensorMap inputs_of(const char* value, const char* coordinates, std::mt19937& random) {
    TensorMap given;
    given["v"] = tensor(value, kValue, random);
    given["l"] = tensor(coordinates, kLocations, random);
    given["w"] = tensor(coordinates, kWeights, random);
    return given;
  }
};

MSDeformPlan plan() { return {{{4, 3, 3}, {2, 2, 2}}, {2, 7, 2, 5}, MSDeformMode::kBilinear}; }

TEST_F(MSDeformAttnOperator, ComputesWhatTheKernelDoes) {
  std::mt19937 random(1);
  TensorMap given = inputs_of("float", "float", random);
  std::vector<float> expected(2 * 7 * 10);
  const MSDeformTensors<float, float> tensors{given["v"].data<float>(), given["l"].data<float>(),
                                              given["w"].data<float>(), expected.data()};
  ms_deform_attn(plan(), tensors, Serial());
  // Ranks that exporters write.
  const Tensor v = given["v"], w = given["w"];  // keep what the views show
  for (const auto& [value, locations, weights] :
       {std::tuple<Shape, Shape, Shape>{kValue, kLocations, kWeights},
        {{2, 16, 10}, kLocations, {2, 7, 10}}}) {
    given["v"] = Tensor::view(DType::kFloat32, value, v.raw(), nullptr);
    given["w"] = Tensor::view(DType::kFloat32, weights, w.raw(), nullptr);
    const auto text = [](const Shape& shape) {
      std::string out;
      for (const auto d : shape) out += (out.empty() ? "" : ", ") + std::to_string(d);
      return out;
    };
    const auto got = run("float[" + text(value) + "] v, float[" + text(locations) + "] l, float[" +
                             text(weights) + "] w",
                         kCall, given);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(got->at("y").shape(), (Shape{2, 7, 10}));
    const float* y = got->at("y").data<float>();
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(y[i], expected[i]) << i;
  }
}

TEST_F(MSDeformAttnOperator, EveryTypeOfValuesAndCoordinates) {
  for (const Types& types : {Types{"float16", "float"}, Types{"float16", "float16"},
                             Types{"bfloat16", "float"}, Types{"bfloat16", "bfloat16"}}) {
    SCOPED_TRACE(std::string(types.value) + " " + types.coordinates);
    std::mt19937 random(1);
    TensorMap given = inputs_of(types.value, types.coordinates, random);
    const std::string c = types.coordinates;
    const auto got = run(std::string(types.value) + "[2, 16, 2, 5] v, " + c +
                             "[2, 7, 2, 5, 2] l, " + c + "[2, 7, 2, 5] w",
                         kCall, given, (std::string(types.value) + "[b, q, c] y").c_str());
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(got->at("y").dtype(), given["v"].dtype());
    std::mt19937 again(1);
    std::vector<float> expected(2 * 7 * 10);
    const Tensor v = tensor("float", kValue, again), l = tensor("float", kLocations, again),
                 w = tensor("float", kWeights, again);
    ms_deform_attn_reference(
        plan(), MSDeformTensors<float, float>{v.data<float>(), l.data<float>(), w.data<float>(),
                                              expected.data()});
    const auto* bits = static_cast<const std::uint16_t*>(got->at("y").raw());
    const bool half =
        v.dtype() == got->at("y").dtype() || std::string_view(types.value) == "float16";
    for (std::size_t i = 0; i < expected.size(); ++i)
      // Weights sum up to about 2.5, values to 1; a bfloat16 coordinate is off by up to 2^-9 * 4
      // pixels.
      ASSERT_NEAR(half ? float16_to_float(bits[i]) : bfloat16_to_float(bits[i]), expected[i],
                  half ? 0.01 : 0.08);
  }
}

TEST_F(MSDeformAttnOperator, ReferencePointsAndShapesAsInputs) {
  std::mt19937 random(3);
  TensorMap given = inputs_of("float", "float", random);
  given["r"] = tensor("float", {2, 7, 1, 4}, random);
  given["s"] = Tensor::from<std::int64_t>(DType::kInt64, {2, 2}, {4, 3, 2, 2});
  const std::string inputs =
      "float[2, 16, 2, 5] v, float[2, 7, 2, 5, 2] l, float[2, 7, 2, 5] w, "
      "float[2, 7, 1, 4] r, int64[2, 2] s";
  const auto got = run(inputs, "<points = [3, 2]> (v, l, w, r, s)", given);
  ASSERT_TRUE(got.ok()) << got.status().message();
  std::vector<float> expected(2 * 7 * 10);
  MSDeformTensors<float, float> tensors{given["v"].data<float>(), given["l"].data<float>(),
                                        given["w"].data<float>(), expected.data()};
  tensors.reference = given["r"].data<float>();
  tensors.reference_kind = {1, 4};
  ms_deform_attn_reference(plan(), tensors);
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(got->at("y").data<float>()[i], expected[i], 1e-5);
}

TEST_F(MSDeformAttnOperator, SaysWhatIsWrong) {
  std::mt19937 random(4);
  TensorMap given = inputs_of("float", "float", random);
  const std::string inputs = "float[2, 16, 2, 5] v, float[2, 7, 2, 5, 2] l, float[2, 7, 2, 5] w";
  const auto message = [&](const std::string& call) {
    const auto got = run(inputs, call, given);
    return got.ok() ? std::string("ok") : got.status().message();
  };
  EXPECT_THAT(message("<spatial_shapes = [4, 3, 2, 2]> (v, l, w)"),
              HasSubstr("the attribute 'points' (of each level) is missing"));
  EXPECT_THAT(message("<points = [3, 2]> (v, l, w)"),
              HasSubstr("spatial_shapes is neither an attribute nor an input"));
  EXPECT_THAT(message("<points = [3, 2], spatial_shapes = [4, 3]> (v, l, w)"),
              HasSubstr("spatial_shapes has 2 numbers, points 2 levels"));
  EXPECT_THAT(message("<points = [3, 3], spatial_shapes = [4, 3, 2, 2]> (v, l, w)"),
              HasSubstr("has 5 points of each head, the attribute 'points' 6"));
  EXPECT_THAT(message("<points = [3, 2], spatial_shapes = [4, 3, 2, 3]> (v, l, w)"),
              HasSubstr("value [2,16,2,5] has 16 pixels, spatial_shapes 18"));
  EXPECT_THAT(
      message("<points = [3, 2], spatial_shapes = [4, 3, 2, 2], mode = \"cubic\"> (v, l, w)"),
      HasSubstr("mode 'cubic' is none of bilinear, nearest, discrete"));
  EXPECT_THAT(message("<points = [3, 2], spatial_shapes = [4, 4, 0, 2]> (v, l, w)"),
              HasSubstr("level 1: 0 x 2 pixels"));
  setenv("TENONNX_OPS", "/nowhere/libtenonnx_ops.so", 1);
  EXPECT_THAT(message(kCall), HasSubstr("set TENONNX_OPS to libtenonnx_ops.so. Tried:"));
}

}  // namespace
}  // namespace tenonnx
