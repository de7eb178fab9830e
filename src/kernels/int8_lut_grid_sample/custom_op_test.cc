// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The operator as ONNX Runtime runs it, from libtenonnx_ops.so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "kernels/int8_lut_grid_sample/int8_lut_grid_sample.h"
#include "ort/session.h"
#include "ort/test_models.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;

// [2, 5, 4, 3] sampled at [2, 3, 7].
struct Data {
  Int8LutGridSample call;
  Tensor value{DType::kInt8, {2, 5, 4, 3}}, grid{DType::kFloat32, {2, 3, 7, 2}};
  Data() {
    call.batch = 2, call.channels = 5, call.height = 4, call.width = 3;
    call.out_height = 3, call.out_width = 7;
    call.value_scale = 0.5F, call.value_zero_point = 3;
    call.out_scale = 0.25F, call.out_zero_point = -2;
    std::mt19937 random(1);
    auto* v = static_cast<std::int8_t*>(value.mutable_raw());
    std::generate(v, v + 120, [&] { return static_cast<std::int8_t>(random()); });
    auto* g = static_cast<float*>(grid.mutable_raw());
    std::generate(g, g + 84, [&] { return std::uniform_real_distribution<float>(-1, 1)(random); });
  }
  const std::int8_t* values() const { return static_cast<const std::int8_t*>(value.raw()); }
  const float* coordinates() const { return static_cast<const float*>(grid.raw()); }
};

constexpr const char* kInputs = "int8[2, 5, 4, 3] v, float[2, 3, 7, 2] g";
constexpr const char* kScales =
    "value_scale = 0.5, value_zero_point = 3, out_scale = 0.25, out_zero_point = -2";

Result<TensorMap> run(const Data& data, const std::string& inputs, const std::string& outputs,
                      const std::string& node) {
  setenv("TENONNX_OPS", TENONNX_TEST_OPS_LIBRARY, 1);
  auto graph = load_session(model_from_text("<ir_version: 8, opset_import: [\"\" : 17, \"tenonnx\" "
                                            ": 1]> g (" +
                                            inputs + ") => (" + outputs + ") { " + node + " }"),
                            {}, {});
  if (!graph.ok()) return graph.status();
  TensorMap given;
  given["v"] = data.value;
  given["g"] = data.grid;
  return graph.value()->run(given);
}

TEST(Int8LutGridSampleOperator, EitherOutputAndBoth) {
  const Data data;
  std::vector<std::int8_t> bytes(2 * 5 * 21);
  std::vector<float> reals(bytes.size());
  int8_lut_grid_sample_reference(data.call, data.values(), data.coordinates(), bytes.data());
  int8_lut_grid_sample_reference(data.call, data.values(), data.coordinates(), reals.data());
  const std::string call = std::string("tenonnx.Int8LutGridSample <") + kScales + "> (v, g)";
  const auto check = [&](const std::string& outputs, const std::string& names, bool y, bool z) {
    SCOPED_TRACE(names);
    const auto got = run(data, kInputs, outputs, names + " = " + call);
    ASSERT_TRUE(got.ok()) << got.status().message();
    if (y) {
      EXPECT_EQ(got.value().at("y").shape(), (Shape{2, 5, 3, 7}));
      const auto* from = static_cast<const std::int8_t*>(got.value().at("y").raw());
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), from));
    }
    if (z) {
      EXPECT_EQ(got.value().at("z").shape(), (Shape{2, 5, 3, 7}));
      const auto* from = static_cast<const float*>(got.value().at("z").raw());
      EXPECT_TRUE(std::equal(reals.begin(), reals.end(), from));
    }
  };
  check("int8[a, b, c, d] y", "y", true, false);
  check("int8[a, b, c, d] y, float[a, b, c, d] z", "y, z", true, true);
  check("float[a, b, c, d] z", "\"\", z", false, true);
}

TEST(Int8LutGridSampleOperator, ChannelsLastAndBorder) {
  Data data;
  const Tensor first = data.value;
  data.value = Tensor::view(DType::kInt8, {2, 4, 3, 5}, first.raw(), nullptr);
  data.call.channels_last = data.call.align_corners = true;
  data.call.padding = Int8LutPadding::kBorder;
  std::vector<std::int8_t> bytes(2 * 5 * 21);
  int8_lut_grid_sample_reference(data.call, data.values(), data.coordinates(), bytes.data());
  const auto got =
      run(data, "int8[2, 4, 3, 5] v, float[2, 3, 7, 2] g", "int8[a, b, c, d] y",
          std::string("y = tenonnx.Int8LutGridSample <layout = \"NHWC\", align_corners = 1, "
                      "padding_mode = \"border\", ") +
              kScales + "> (v, g)");
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got.value().at("y").shape(), (Shape{2, 3, 7, 5}));
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(),
                         static_cast<const std::int8_t*>(got.value().at("y").raw())));
}

TEST(Int8LutGridSampleOperator, SaysWhatIsWrong) {
  const Data data;
  const auto message = [&](const std::string& attributes, const std::string& inputs = kInputs) {
    const auto got = run(data, inputs, "int8[a, b, c, d] y",
                         "y = tenonnx.Int8LutGridSample <" + attributes + "> (v, g)");
    return got.ok() ? std::string("ok") : got.status().message();
  };
  EXPECT_THAT(message("align_corners = 1"), HasSubstr("'value_scale' is missing or 0"));
  EXPECT_THAT(message("value_scale = -1.0"), HasSubstr("value_scale is -1.0"));
  EXPECT_THAT(message("value_scale = 1.0, value_zero_point = 200"),
              HasSubstr("value_zero_point is 200, -128 to 127"));
  EXPECT_THAT(message("value_scale = 1.0, padding_mode = \"reflection\""),
              HasSubstr("padding_mode 'reflection' is none of zeros, border"));
  EXPECT_THAT(message("value_scale = 1.0, layout = \"CHWN\""),
              HasSubstr("layout 'CHWN' is none of NCHW, NHWC"));
  Data other;
  other.grid = Tensor(DType::kFloat32, {1, 3, 7, 2});
  const auto got = run(other, "int8[2, 5, 4, 3] v, float[1, 3, 7, 2] g", "int8[a, b, c, d] y",
                       "y = tenonnx.Int8LutGridSample <value_scale = 1.0> (v, g)");
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(got.status().message(), HasSubstr("value [2,5,4,3] has 2 images, grid [1,3,7,2] 1"));
}

}  // namespace
}  // namespace tenonnx
