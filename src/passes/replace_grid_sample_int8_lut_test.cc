// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/fusion_test_support.h"
#include "passes/grid_sample_test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kPass = "replace_grid_sample_int8_lut";

// The pass's own bound holds, and is not idle: of the error that it allows, a part is there.
TEST(ReplaceGridSampleInt8Lut, StaysWithinTheBoundThatItStates) {
  for (const char* padding : {"zeros", "border"})
    for (const bool align : {false, true})
      for (const char* output : {"float", "int8"}) {
        GridSampleCase c = roomy({});
        c.padding = padding;
        c.align_corners = align;
        Model model = c.model();
        const TensorMap inputs = {{"value", ramp(c.value_shape())}, {"grid", probe_grid(c, false)}};
        const Tensor own = run_on_cpu(model, inputs).at("y");
        const PassOutcome outcome = run_pass(model, kPass, {{"range", "1.02"}, {"output", output}});
        ASSERT_EQ(outcome.applied, 1) << first_reason(outcome);
        ASSERT_TRUE(outcome.bound.has_value());
        // 127 units are 1.02; 2.5 of them, or 3 with a rounded result.
        const double unit = 1.02 / 127;
        EXPECT_NEAR(outcome.bound->value / unit, output == std::string("int8") ? 3 : 2.5, 0.01);
        const double worst = largest_difference(own, run_on_cpu(model, inputs).at("y"));
        EXPECT_LE(worst, outcome.bound->value) << c.text() << " " << output;
        EXPECT_GE(worst, unit / 4) << c.text() << " " << output;
      }
}

TEST(ReplaceGridSampleInt8Lut, WritesQuantizeAndDequantizeAround) {
  Model model = GridSampleCase().model();
  run_pass(model, kPass, {{"range", "2"}});
  EXPECT_THAT(op_types(model), ElementsAre("QuantizeLinear", "Int8LutGridSample"));
  Model whole = GridSampleCase().model();
  run_pass(whole, kPass, {{"range", "2"}, {"output", "int8"}});
  EXPECT_THAT(op_types(whole),
              ElementsAre("QuantizeLinear", "Int8LutGridSample", "DequantizeLinear"));
  EXPECT_TRUE(check_model(whole, "the model").ok());
}

// What stands behind keeps its types, though ONNX infers nothing through the operator: the node
// behind it can be rewritten by the next pass.
TEST(ReplaceGridSampleInt8Lut, TheNextPassKnowsTheTypes) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3,5,7] v, float[2,6,11,2] p, float[2,4,4,2] q) => (float[2,3,4,4] y) {
      s = GridSample (v, p)
      y = GridSample (s, q)
    })");
  EXPECT_EQ(run_pass(model, kPass, {{"range.v", "1"}}).applied, 1);
  EXPECT_EQ(op_counts(model)["GridSample"], 1);
  EXPECT_EQ(run_pass(model, "replace_grid_sample_gather").applied, 1);
}

TEST(ReplaceGridSampleInt8Lut, TakesInt8ThatIsThere) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (int8[2,3,5,7] a, float[2,31,33,2] grid) => (float[2,3,31,33] y)
    <float k = {0.02}, int8 z = {-3}> {
      v = DequantizeLinear (a, k, z)
      y = GridSample (v, grid)
    })");
  GridSampleCase c = roomy({});
  Tensor a(DType::kInt8, c.value_shape());
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.mutable_data<std::int8_t>()[i] = static_cast<std::int8_t>((i * 37) % 256 - 128);
  const TensorMap inputs = {{"a", a}, {"grid", probe_grid(c, false)}};
  const Tensor own = run_on_cpu(model, inputs).at("y");
  const PassOutcome outcome = run_pass(model, kPass);
  ASSERT_EQ(outcome.applied, 1) << first_reason(outcome);
  EXPECT_THAT(op_types(model), ElementsAre("Int8LutGridSample"));
  EXPECT_NEAR(outcome.bound->value / 0.02, 2, 0.01);
  EXPECT_LE(largest_difference(own, run_on_cpu(model, inputs).at("y")), outcome.bound->value);
}

TEST(ReplaceGridSampleInt8Lut, TheBoundIsThatOfTheWorstSite) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,3,5,7] a, float[1,3,5,7] b, float[1,6,11,2] p) =>
      (float[1,3,6,11] y, float[1,3,6,11] z) {
      y = GridSample (a, p)
      z = GridSample (b, p)
    })");
  const PassOutcome outcome = run_pass(model, kPass, {{"range", "1.27"}, {"range.b", "12.7"}});
  ASSERT_EQ(outcome.applied, 2);
  EXPECT_NEAR(outcome.bound->value, 2.5 * 0.1, 0.001);
  EXPECT_THAT(outcome.bound->origin, HasSubstr("'b'"));
}

TEST(ReplaceGridSampleInt8Lut, RefusesWithNodeAndReason) {
  const auto reason = [](GridSampleCase c, const PassOptions& options) {
    Model model = c.model();
    model.mutable_proto().mutable_graph()->mutable_node(0)->set_name("s#2");
    const PassOutcome outcome = run_pass(model, kPass, options);
    EXPECT_EQ(outcome.applied, 0);
    EXPECT_FALSE(outcome.bound.has_value());
    if (outcome.skipped.empty()) return std::string();
    EXPECT_THAT(outcome.skipped[0].node, HasSubstr("s#2"));
    return outcome.skipped[0].reason;
  };
  GridSampleCase c;
  EXPECT_THAT(reason(c, {}), AllOf(HasSubstr("no range of 'value'"), HasSubstr("range.value=MAX")));
  EXPECT_THAT(reason(c, {{"range.other", "1"}}), HasSubstr("no range of 'value'"));
  c.mode = "nearest";
  EXPECT_THAT(reason(c, {{"range", "1"}}), HasSubstr("its mode is nearest"));
  c.mode = "bilinear";
  c.padding = "reflection";
  EXPECT_THAT(reason(c, {{"range", "1"}}), HasSubstr("reflection"));
}

TEST(ReplaceGridSampleInt8Lut, BadOptionsAreNamed) {
  const auto message = [](const std::string& name, const std::string& value) {
    Model model = GridSampleCase().model();
    const std::vector<std::string> names = {kPass};
    return run_passes(model, names, {{std::string(kPass) + "." + name, value}}).status().message();
  };
  for (const char* bad : {"", "0", "-1", "nan", "inf", "1x"})
    EXPECT_THAT(message("range", bad), HasSubstr("range must be a number above 0")) << bad;
  EXPECT_THAT(message("range.x", "-2"), HasSubstr("range.x must be"));
  EXPECT_THAT(message("output", "int4"), HasSubstr("output must be float or int8, got 'int4'"));
  EXPECT_THAT(message("scale", "1"), HasSubstr("unknown option 'scale'"));
}

}  // namespace
}  // namespace tenonnx
