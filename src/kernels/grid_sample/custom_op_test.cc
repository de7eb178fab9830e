// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The operator as ONNX Runtime runs it, beside ONNX Runtime's own GridSample in the same graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>

#include "ort/session.h"
#include "ort/test_models.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

Result<TensorMap> run(const std::string& signature, const std::string& nodes,
                      const TensorMap& inputs, int opset) {
  setenv("TENONNX_OPS", TENONNX_TEST_OPS_LIBRARY, 1);
  auto graph = load_session(
      model_from_text("<ir_version: 9, opset_import: [\"\" : " + std::to_string(opset) +
                      ", \"tenonnx\" : 1]> g " + signature + " { " + nodes + " }"),
      {}, {});
  if (!graph.ok()) return graph.status();
  return graph.value()->run(inputs);
}

Tensor random_tensor(const Shape& shape, unsigned seed) {
  Tensor made(DType::kFloat32, shape);
  std::mt19937 random(seed);
  auto* to = static_cast<float*>(made.mutable_raw());
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::generate(to, to + count,
                [&] { return std::uniform_real_distribution<float>(-1.3F, 1.3F)(random); });
  return made;
}

// Values are at most 1.3; 4 ulp of them, and the two coordinates' rounding (3 units of 2^-24 of
// at most 2.3 * 13 + 1 pixels) times the largest difference, twice for cubic.
constexpr float kLimit = 4 * 0x1p-23F * 1.3F + 2 * 2 * 3 * 0x1p-24F * 31 * 2.6F;

void expect_like_onnx(const std::string& inputs, const std::string& attributes,
                      const TensorMap& given, int opset) {
  SCOPED_TRACE(inputs + " <" + attributes + "> opset " + std::to_string(opset));
  const std::string call = " <" + attributes + "> (x, g)";
  const auto got = run("(" + inputs + ") => (y, z)",
                       "y = GridSample" + call + " z = tenonnx.GridSample" + call, given, opset);
  ASSERT_TRUE(got.ok()) << got.status().message();
  const Tensor& theirs = got.value().at("y");
  const Tensor& ours = got.value().at("z");
  ASSERT_EQ(ours.shape(), theirs.shape());
  const auto* a = static_cast<const float*>(theirs.raw());
  const auto* b = static_cast<const float*>(ours.raw());
  std::int64_t count = 1;
  for (const std::int64_t size : ours.shape()) count *= size;
  for (std::int64_t i = 0; i < count; ++i) ASSERT_NEAR(a[i], b[i], kLimit) << i;
}

TEST(GridSampleOperator, AsOnnxRuntimesOwn) {
  const TensorMap given = {{"x", random_tensor({2, 5, 7, 13}, 1)},
                           {"g", random_tensor({2, 9, 11, 2}, 2)}};
  const std::string inputs = "float[2, 5, 7, 13] x, float[2, 9, 11, 2] g";
  for (const char* mode : {"linear", "nearest", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const char* align : {"0", "1"})
        expect_like_onnx(inputs,
                         std::string("mode = \"") + mode + "\", padding_mode = \"" + padding +
                             "\", align_corners = " + align,
                         given, 20);
  expect_like_onnx(inputs, "mode = \"bilinear\"", given, 16);
  expect_like_onnx(inputs, "mode = \"bicubic\"", given, 16);
  expect_like_onnx(inputs, "align_corners = 1", given, 16);
  expect_like_onnx(inputs, "align_corners = 1", given, 20);
}

TEST(GridSampleOperator, FiveDimensions) {
  const TensorMap given = {{"x", random_tensor({2, 3, 4, 7, 6}, 1)},
                           {"g", random_tensor({2, 3, 5, 4, 3}, 2)}};
  for (const char* mode : {"linear", "nearest"})
    for (const char* padding : {"zeros", "border", "reflection"})
      expect_like_onnx("float[2, 3, 4, 7, 6] x, float[2, 3, 5, 4, 3] g",
                       std::string("mode = \"") + mode + "\", padding_mode = \"" + padding + "\"",
                       given, 20);
}

TEST(GridSampleOperator, ChannelsLastAndShapes) {
  const TensorMap given = {{"x", random_tensor({2, 5, 7, 13}, 1)},
                           {"g", random_tensor({2, 9, 11, 2}, 2)}};
  const auto got = run("(float[N, 5, 7, 13] x, float[N, 9, 11, 2] g) => (float[M, 5, 9, 11] y, z)",
                       "y = tenonnx.GridSample (x, g) "
                       "t = Transpose <perm = [0, 2, 3, 1]> (x) "
                       "u = tenonnx.GridSample <layout = \"NHWC\"> (t, g) "
                       "z = Transpose <perm = [0, 3, 1, 2]> (u)",
                       given, 20);
  ASSERT_TRUE(got.ok()) << got.status().message();
  const auto* y = static_cast<const float*>(got.value().at("y").raw());
  const auto* z = static_cast<const float*>(got.value().at("z").raw());
  EXPECT_EQ(got.value().at("z").shape(), (Shape{2, 5, 9, 11}));
  for (int i = 0; i < 2 * 5 * 99; ++i) ASSERT_NEAR(y[i], z[i], 4 * 0x1p-23F * 1.3F) << i;
}

TEST(GridSampleOperator, HalfPrecision) {
  const TensorMap given = {{"x", random_tensor({1, 20, 7, 13}, 1)},
                           {"g", random_tensor({1, 9, 11, 2}, 2)}};
  for (const char* type : {"10", "16"}) {
    const std::string cast = std::string("Cast <to = ") + type + "> ";
    const auto got = run("(float[1, 20, 7, 13] x, float[1, 9, 11, 2] g) => (y, z, w)",
                         "h = " + cast + "(x) k = " + cast +
                             "(g) a = tenonnx.GridSample (h, g) y = Cast <to = 1> (a) "
                             "b = tenonnx.GridSample (h, k) z = Cast <to = 1> (b) "
                             "w = tenonnx.GridSample (x, g)",
                         given, 20);
    ASSERT_TRUE(got.ok()) << got.status().message();
    const auto* y = static_cast<const float*>(got.value().at("y").raw());
    const auto* z = static_cast<const float*>(got.value().at("z").raw());
    const auto* w = static_cast<const float*>(got.value().at("w").raw());
    // Rounding of values (2^-11, 2^-8 of 1.3), then of the result; a grid of 16 bits moves points
    // by as much of (1.3 / 2 * 13) pixels.
    const float unit = type == std::string("10") ? 0x1p-11F : 0x1p-8F;
    for (int i = 0; i < 20 * 99; ++i) {
      ASSERT_NEAR(y[i], w[i], 2 * unit * 1.3F) << i;
      ASSERT_NEAR(z[i], w[i], 2 * unit * 1.3F + 2 * unit * 8.5F * 2.6F) << i;
    }
  }
}

std::string error_of(const std::string& inputs, const std::string& attributes,
                     const TensorMap& given) {
  const auto got =
      run("(" + inputs + ") => (y)", "y = tenonnx.GridSample " + attributes + " (x, g)", given, 20);
  return got.ok() ? "no error" : got.status().message();
}

TEST(GridSampleOperator, Errors) {
  const TensorMap given = {{"x", random_tensor({2, 5, 7, 13}, 1)},
                           {"g", random_tensor({2, 9, 11, 2}, 2)}};
  const std::string free = "float[A, B, C, D] x, float[E, F, G, H] g";
  EXPECT_THAT(error_of(free, "<mode = \"lanczos\">", given),
              HasSubstr("tenonnx GridSample: mode 'lanczos' is none of linear (bilinear), nearest, "
                        "cubic (bicubic)"));
  EXPECT_THAT(error_of(free, "<padding_mode = \"wrap\">", given),
              HasSubstr("padding_mode 'wrap' is none of zeros, border, reflection"));
  EXPECT_THAT(error_of(free, "<layout = \"CHWN\">", given),
              HasSubstr("layout 'CHWN' is none of NCHW, NHWC"));
  EXPECT_THAT(error_of(free, "", {{"x", given.at("x")}, {"g", random_tensor({1, 9, 11, 2}, 2)}}),
              HasSubstr("value [2,5,7,13] has 2 images, grid [1,9,11,2] 1"));
  EXPECT_THAT(error_of(free, "", {{"x", given.at("x")}, {"g", random_tensor({2, 9, 11, 3}, 2)}}),
              HasSubstr("the grid with 2 coordinates last"));
  EXPECT_THAT(
      error_of(free, "", {{"x", Tensor(DType::kFloat32, {2, 5, 0, 13})}, {"g", given.at("g")}}),
      HasSubstr("an image of 0 x 13 has no pixel to sample (value [2,5,0,13])"));
  EXPECT_THAT(error_of("float[A, B, C, D, E] x, float[F, G, H, I, J] g", "<mode = \"cubic\">",
                       {{"x", random_tensor({1, 1, 2, 2, 2}, 1)},
                        {"g", random_tensor({1, 1, 1, 1, 3}, 1)}}),
              HasSubstr("mode cubic has no form for 3 dimensions"));
}

TEST(GridSampleOperator, ADimensionWithoutNumberOrNameIsNotGuessed) {
  const TensorMap given = {{"x", random_tensor({1, 2, 4, 5}, 1)},
                           {"g", random_tensor({1, 3, 2, 2}, 2)}};
  const auto got = run("(float[1, ?, 4, 5] x, float[1, 3, 2, 2] g) => (s)",
                       "y = tenonnx.GridSample (x, g) s = Shape (y)", given, 20);
  ASSERT_TRUE(got.ok()) << got.status().message();
  const auto* s = static_cast<const std::int64_t*>(got.value().at("s").raw());
  EXPECT_EQ(std::vector<std::int64_t>(s, s + 4), (std::vector<std::int64_t>{1, 2, 3, 2}));
}

TEST(GridSampleOperator, AnAttributeOfAnotherTypeIsNoDefault) {
  const TensorMap given = {{"x", random_tensor({2, 5, 7, 13}, 1)},
                           {"g", random_tensor({2, 9, 11, 2}, 2)}};
  const std::string free = "float[A, B, C, D] x, float[E, F, G, H] g";
  EXPECT_THAT(error_of(free, "<align_corners = 1.0>", given),
              HasSubstr("the attribute 'align_corners' has another type"));
  EXPECT_THAT(error_of(free, "<mode = 3>", given),
              HasSubstr("the attribute 'mode' has another type"));
}

}  // namespace
}  // namespace tenonnx
