// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The operator as ONNX Runtime runs it, from libtenonnx_ops.so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/static_sample/static_sample.h"
#include "ort/session.h"
#include "ort/test_models.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

template <typename V>
std::string list(const V& values) {
  std::string out;
  for (const auto v : values) {
    std::string text = std::to_string(v);
    if constexpr (std::is_floating_point_v<typename V::value_type>) {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.9e", static_cast<double>(v));
      text = digits;
    }
    out += (out.empty() ? "" : ", ") + text;
  }
  return "{" + out + "}";
}

// [2, 3, 4, 5] sampled at [12, 11] points, the same for both images.
struct Data {
  std::vector<float> coordinates, value;
  StaticSource source;
  Data() {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1.2F, 1.2F);
    coordinates.resize(2 * 12 * 11);
    value.resize(2 * 3 * 4 * 5);
    for (float& c : coordinates) c = uniform(random);
    for (float& v : value) v = uniform(random);
    source = {coordinates.data(), 1, 4, 5, 12, 11};
  }
};

constexpr const char* kSizes = "input_size = [4, 5], output_size = [12, 11]";

// The initializers of a grid, and the names of inputs 1 to 5.
struct Constants {
  std::string initializers, names;
};
Constants constants(const StaticGrid& grid) {
  const auto one = [](const char* type, std::size_t count, const char* name,
                      const std::string& values) {
    return std::string(type) + "[" + std::to_string(count) + "] " + name + " = " + values;
  };
  if (grid.format == StaticFormat::kTaps)
    return {one("int32", grid.indices.size(), "i", list(grid.indices)) + ", " +
                one("float", grid.weights.size(), "w", list(grid.weights)),
            "i, w"};
  if (grid.format == StaticFormat::kInt16)
    return {one("int16", grid.coordinates.size(), "q", list(grid.coordinates)), "\"\", \"\", q"};
  return {one("float", grid.base.size(), "b", list(grid.base)) + ", " +
              one("int8", grid.delta.size(), "d", list(grid.delta)),
          "\"\", \"\", \"\", b, d"};
}

Result<TensorMap> run(const Data& data, const std::string& attributes, const Constants& constants,
                      const Shape& shape = {2, 3, 4, 5}) {
  setenv("TENONNX_OPS", TENONNX_TEST_OPS_LIBRARY, 1);
  const std::string text =
      "<ir_version: 8, opset_import: [\"\" : 17, \"tenonnx\" : 1]> g (float[n, c, h, w0] v) => "
      "(float[n, a, b0, e] y) <" +
      constants.initializers + "> { y = tenonnx.StaticSample <" + attributes + "> (v, " +
      constants.names + ") }";
  auto graph = load_session(model_from_text(text), {}, {});
  if (!graph.ok()) return graph.status();
  TensorMap given;
  given["v"] = Tensor::view(DType::kFloat32, shape, data.value.data(), nullptr);
  return graph.value()->run(given);
}

void expect_same(const Data& data, const StaticGrid& grid, bool channels_last,
                 const std::string& attributes) {
  std::vector<float> expected(2 * 3 * 12 * 11);
  static_sample_reference(grid, {2, 3, channels_last}, data.value.data(), expected.data());
  const auto got =
      run(data, attributes, constants(grid), channels_last ? Shape{2, 4, 5, 3} : Shape{2, 3, 4, 5});
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got.value().at("y").shape(),
            channels_last ? (Shape{2, 12, 11, 3}) : (Shape{2, 3, 12, 11}));
  const auto* y = static_cast<const float*>(got.value().at("y").raw());
  // Coordinates below 8 pixels round by 2^-22, values differ by at most 2.4.
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-5);
}

TEST(StaticSampleOperator, EveryForm) {
  const Data data;
  const std::string sizes = kSizes;
  for (const bool last : {false, true}) {
    const std::string rest = sizes + (last ? ", layout = \"NHWC\"" : "");
    expect_same(data, encode_taps(data.source).grid, last, rest);
    expect_same(data, encode_nearest(data.source).grid, last, rest + ", taps = 1");
    expect_same(data, encode_blocks(data.source).grid, last, rest + ", form = \"blocks\"");
    const StaticGrid grid = encode_int16(data.source).grid;
    const auto pair = [](const float* v) {
      const std::string text = list(std::vector<float>{v[0], v[1]});
      return "[" + text.substr(1, text.size() - 2) + "]";
    };
    expect_same(
        data, grid, last,
        rest + ", form = \"int16\", step = " + pair(grid.step) + ", offset = " + pair(grid.offset));
  }
}

TEST(StaticSampleOperator, EveryTypeOfValues) {
  setenv("TENONNX_OPS", TENONNX_TEST_OPS_LIBRARY, 1);
  const Data data;
  const StaticGrid grid = encode_taps(data.source).grid;
  const Constants of_grid = constants(grid);
  std::vector<float> expected(2 * 3 * 12 * 11);
  static_sample_reference(grid, {2, 3, false}, data.value.data(), expected.data());
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const bool half = dtype == DType::kFloat16;
    const std::string type = half ? "float16" : "bfloat16";
    SCOPED_TRACE(type);
    const std::string text = "<ir_version: 8, opset_import: [\"\" : 17, \"tenonnx\" : 1]> g (" +
                             type + "[2, 3, 4, 5] v) => (" + type + "[n, a, b0, e] y) <" +
                             of_grid.initializers + "> { y = tenonnx.StaticSample <" + kSizes +
                             "> (v, " + of_grid.names + ") }";
    auto graph = load_session(model_from_text(text), {}, {});
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    std::vector<std::uint16_t> bits;
    for (const float v : data.value)
      bits.push_back(half ? float_to_float16(v) : float_to_bfloat16(v));
    TensorMap given;
    given["v"] = Tensor::view(dtype, {2, 3, 4, 5}, bits.data(), nullptr);
    const auto got = graph.value()->run(given);
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_EQ(got->at("y").dtype(), dtype);
    const auto* y = static_cast<const std::uint16_t*>(got->at("y").raw());
    // Values of up to 1.2 are rounded once before and once after.
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(half ? float16_to_float(y[i]) : bfloat16_to_float(y[i]), expected[i],
                  half ? 0x1p-10 : 0x1p-7);
  }
}

TEST(StaticSampleOperator, SaysWhatIsWrong) {
  const Data data;
  const StaticGrid grid = encode_taps(data.source).grid;
  const Constants good = constants(grid);
  const auto message = [&](const std::string& attributes, const Constants& given,
                           const Shape& shape = {2, 3, 4, 5}) {
    const auto got = run(data, attributes, given, shape);
    return got.ok() ? std::string("ok") : got.status().message();
  };
  const std::string sizes = kSizes;
  EXPECT_EQ(message(sizes, good), "ok");
  StaticGrid wild = grid;
  wild.indices[7] = 20;
  EXPECT_THAT(message(sizes, constants(wild)),
              HasSubstr("indices[7] is 20, -1 to 19 are possible"));
  EXPECT_THAT(message("output_size = [12, 11]", good),
              HasSubstr("the attribute 'input_size' needs 2 numbers, height and width, got 0"));
  EXPECT_THAT(message("input_size = [4, 5], output_size = [12, 10]", good),
              HasSubstr("indices has 528 elements, 480 are needed"));
  EXPECT_THAT(message(sizes + ", form = \"lut\"", good),
              HasSubstr("form 'lut' is none of taps, int16, blocks"));
  EXPECT_THAT(message(sizes + ", form = \"int16\"", good), HasSubstr("'step' and 'offset'"));
  EXPECT_THAT(message(sizes + ", form = \"blocks\"", good),
              HasSubstr("base is missing or no initializer: the grid has to be constant"));
  EXPECT_THAT(message(sizes, good, {2, 3, 5, 4}),
              HasSubstr("has 5 x 4 pixels, the attribute 'input_size' 4 x 5"));
}

}  // namespace
}  // namespace tenonnx
