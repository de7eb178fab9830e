// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path kExample = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx";

PassOutcome convert(Model& model, int target) {
  return run_pass(model, "convert_opset", {{"target", std::to_string(target)}});
}

const onnx::NodeProto& node_of(const Model& model, const std::string& op) {
  for (const auto& node : model.proto().graph().node())
    if (node.op_type() == op) return node;
  ADD_FAILURE() << "no " << op;
  return model.proto().graph().node(0);
}

std::string mode_of(const Model& model) {
  return attribute_or(node_of(model, "GridSample"), "mode", "not written");
}

// The one refusal; the model must be as it was.
Refusal refusal(const std::string& text, int target) {
  Model model = model_from_text(text);
  const std::string before = model.serialize().value();
  const PassOutcome outcome = convert(model, target);
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_EQ(model.serialize().value(), before);
  EXPECT_EQ(outcome.skipped.size(), 1U);
  return outcome.skipped.empty() ? Refusal() : outcome.skipped.front();
}

constexpr const char* kGridSample = R"(
    g (float[1,2,4,4] x, float[1,3,3,2] grid) => (float[1,2,3,3] y) {
      y = GridSample )";

TEST(ConvertOpset, GridSampleModesAreRenamedTheDefaultToo) {
  const std::map<std::string, std::string> modes = {{"", "linear"},
                                                    {"<mode = \"bilinear\">", "linear"},
                                                    {"<mode = \"bicubic\">", "cubic"},
                                                    {"<mode = \"nearest\">", "nearest"}};
  const TensorMap inputs = {{"x", ramp({1, 2, 4, 4})}, {"grid", ramp({1, 3, 3, 2})}};
  for (const auto& [attribute, mode] : modes) {
    Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 16]>)" +
                                  (kGridSample + attribute) + " (x, grid) }");
    const TensorMap before = run_on_cpu(model, inputs);
    const int changes = mode == "nearest" ? 1 : 2;  // the mode; the opset itself
    EXPECT_EQ(convert(model, 22).applied, changes) << attribute;
    EXPECT_EQ(model.opset(), 22);
    EXPECT_EQ(model.ir_version(), 10);
    EXPECT_EQ(mode_of(model), mode);
    expect_identical(before, run_on_cpu(model, inputs));
    EXPECT_EQ(convert(model, 16).applied, changes);
    EXPECT_EQ(model.ir_version(), 8);
    EXPECT_EQ(mode_of(model), mode == "linear"  ? "bilinear"
                              : mode == "cubic" ? "bicubic"
                                                : "nearest");
    expect_identical(before, run_on_cpu(model, inputs));
  }
}

TEST(ConvertOpset, TheDefaultModeOfTheNewerGridSampleIsWrittenOut) {
  Model model = model_from_text(R"(<ir_version: 9, opset_import: ["" : 20]>)" +
                                std::string(kGridSample) + "(x, grid) }");
  convert(model, 19);
  EXPECT_EQ(mode_of(model), "bilinear");
}

TEST(ConvertOpset, RefusesVolumetricGridSampleBelow20) {
  const Refusal r = refusal(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[1,2,4,4,4] x, float[1,3,3,3,3] grid) => (float[1,2,3,3,3] y) {
      y = GridSample (x, grid) })",
                            17);
  EXPECT_EQ(r.node, "GridSample 'node_0'");
  EXPECT_THAT(r.reason, AllOf(HasSubstr("opset 22 to 17"), HasSubstr("rank 5")));
}

TEST(ConvertOpset, ReductionsSplitResizePadAndPoolsThereAndBack) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 16]>
    g (float[1,4,6,6] x) => (float[1,2,6,6] a, float[1,2,6,6] b, float[1,4,1,1] c, float d,
                             float[1,4,12,12] e, float[1,4,8,8] f, float[1,4,3,3] h, int64[1,4,6,6] k)
    <int64[8] pads = {0,0,1,1,0,0,1,1}, float[4] scales = {1,1,2,2}> {
      a, b = Split <axis = 1> (x)
      c = ReduceMean <axes = [2,3]> (x)
      d = ReduceMax <keepdims = 0> (x)
      e = Resize <mode = "linear"> (x, , scales)
      f = Pad (x, pads)
      h = AveragePool <kernel_shape = [2,2], strides = [2,2]> (x)
      k = Cast <to = 7> (x)
    })");
  const Model original = model.clone();
  const TensorMap inputs = {{"x", ramp({1, 4, 6, 6})}};
  const TensorMap before = run_on_cpu(model, inputs);
  convert(model, 22);
  EXPECT_EQ(attribute_or(node_of(model, "Split"), "num_outputs", std::int64_t{0}), 2);
  EXPECT_EQ(node_of(model, "ReduceMean").input_size(), 2);
  EXPECT_EQ(find_attribute(node_of(model, "ReduceMean"), "axes"), nullptr);
  EXPECT_EQ(node_of(model, "ReduceMax").input_size(), 1);
  TensorMap newer = run_on_cpu(model, inputs);
  // ONNX Runtime 1.29 adds the four elements of AveragePool-19 in another order: two roundings of
  // sums up to 4, divided by 4.
  const Tensor& pooled = newer.at("h");
  for (std::int64_t i = 0; i < pooled.size(); ++i)
    EXPECT_NEAR(pooled.data<float>()[i], before.at("h").data<float>()[i], 0x1p-23);
  newer["h"] = before.at("h");
  expect_identical(before, newer);
  convert(model, 16);
  EXPECT_EQ(model.proto().graph().node_size(), original.proto().graph().node_size());
  EXPECT_EQ(model.proto().graph().initializer_size(), 2);  // the axes went back
  for (int i = 0; i < model.proto().graph().node_size(); ++i) {
    EXPECT_EQ(model.proto().graph().node(i).ShortDebugString(),
              original.proto().graph().node(i).ShortDebugString());
  }
  expect_identical(before, run_on_cpu(model, inputs));
}

TEST(ConvertOpset, WhatTheNewerOperatorsSayOtherwiseIsWrittenOut) {
  Model model = model_from_text(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[1,4,5,6] x) => (float[1,4,3,6] a, float[1,4,2,6] b, float[1,4,10,12] e,
                             float[1,4,10,6] s, float[1,4,7,6] f)
    <int64[2] pads = {1,1}, int64[1] axis = {-2}, float[2] scales = {2,2}, int64[1] sizes = {10}> {
      a, b = Split <axis = 2, num_outputs = 2> (x)
      e = Resize <mode = "linear", axes = [3,2]> (x, , scales)
      s = Resize <mode = "linear", axes = [2], antialias = 0> (x, , , sizes)
      f = Pad (x, pads, , axis)
    })");
  const TensorMap inputs = {{"x", ramp({1, 4, 5, 6})}};
  const TensorMap before = run_on_cpu(model, inputs);
  EXPECT_EQ(convert(model, 16).applied, 5);
  EXPECT_EQ(node_of(model, "Split").input_size(), 2);  // 3 and 2: not equal
  EXPECT_EQ(node_of(model, "Pad").input_size(), 2);
  expect_identical(before, run_on_cpu(model, inputs));
}

TEST(ConvertOpset, RefusesWhatTheOlderOperatorsCannotDo) {
  const auto reason = [](const std::string& signature, const std::string& node) {
    return refusal(
               R"(<ir_version: 10, opset_import: ["" : 22]> g )" + signature + " { " + node + " }",
               16)
        .reason;
  };
  const std::string image = "(float[1,2,6,6] x) => (float[N,C,H,W] y)";
  EXPECT_THAT(reason(image, "y = AveragePool <kernel_shape = [2,2], dilations = [2,2]> (x)"),
              HasSubstr("dilations"));
  EXPECT_THAT(reason("(float[1,2,6,6] x, float[2] s) => (float[N,C,H,W] y)",
                     "y = Resize <mode = \"linear\", antialias = 1, axes = [2,3]> (x, , s)"),
              HasSubstr("antialias"));
  EXPECT_THAT(
      reason("(float[1,2,6,6] x, float[4] s) => (float[N,C,H,W] y)",
             "y = Resize <coordinate_transformation_mode = \"half_pixel_symmetric\"> (x, , s)"),
      HasSubstr("half_pixel_symmetric"));
  EXPECT_THAT(
      reason("(float[4] x, int64[8] p) => (float[N] y)", "y = Pad <mode = \"wrap\"> (x, p)"),
      HasSubstr("wrap"));
  EXPECT_THAT(reason("(float[4,4] x, int64[1] axes) => (float[N,M] y)", "y = ReduceMean (x, axes)"),
              HasSubstr("not constant"));
  EXPECT_THAT(
      reason("(float[4,4] x) => (float[4,4] y)", "y = ReduceMean <noop_with_empty_axes = 1> (x)"),
      HasSubstr("noop"));
  EXPECT_THAT(reason("(float[4] x, int64[2,1] i, float[2] u) => (float[4] y)",
                     "y = ScatterND <reduction = \"max\"> (x, i, u)"),
              HasSubstr("'max' came with opset 18"));
  EXPECT_THAT(reason("(float[N,4] x) => (float[M,4] y, float[K,4] z)",
                     "y, z = Split <num_outputs = 2> (x)"),
              HasSubstr("not known"));
}

TEST(ConvertOpset, RefusesOperatorsThatDoNotExistThere) {
  const std::string layer_norm = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4] x, float[4] s) => (float[2,4] y) { y = LayerNormalization (x, s) })";
  EXPECT_THAT(refusal(layer_norm, 16).reason,
              AllOf(HasSubstr("opset 17 to 16"), HasSubstr("no LayerNormalization at opset 16"),
                    HasSubstr("decompose_layer_normalization")));
  EXPECT_THAT(refusal(R"(<ir_version: 9, opset_import: ["" : 20]>
    g (float[2,4] x) => (float[2,4] y) { y = Gelu (x) })",
                      19)
                  .reason,
              HasSubstr("decompose_gelu"));
  EXPECT_THAT(refusal(R"(<ir_version: 8, opset_import: ["" : 18]>
    g (float[1,4,1] x) => (float[1,4,2] y) { y = DFT (x) })",
                      21)
                  .reason,
              HasSubstr("DFT changed at opset 20 in a way that has no adapter"));
}

TEST(ConvertOpset, TypesThatTheTargetDoesNotTakeAreFound) {
  // Conv takes bfloat16 from 22 on; Equal strings from 19 on, bfloat16 before.
  EXPECT_THAT(refusal(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (bfloat16[1,2,4,4] x, bfloat16[2,2,1,1] w) => (bfloat16[1,2,4,4] y) { y = Conv (x, w) })",
                      21)
                  .reason,
              AllOf(HasSubstr("Conv-11 does not take tensor(bfloat16)"), HasSubstr("'x'")));
  Model fine = model_from_text(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[1,2,4,4] x, float[2,2,1,1] w) => (float[1,2,4,4] y) { y = Conv (x, w) })");
  EXPECT_EQ(convert(fine, 21).applied, 1);
  EXPECT_EQ(fine.opset(), 21);
}

TEST(ConvertOpset, OneTypeParameterMeansOneType) {
  // QuantizeLinear-13 takes int32 with a float scale, QuantizeLinear-19 wants one type for both.
  EXPECT_THAT(refusal(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (int32[4] x, float s, uint8 z) => (uint8[4] y) { y = QuantizeLinear (x, s, z) })",
                      20)
                  .reason,
              HasSubstr("wants one type for all of T1"));
}

TEST(ConvertOpset, BodiesAndFunctionsAreConverted) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
    g (bool c, float[1,4] x) => (float[1,1] y, float[1,2] z) {
      y = If (c) <
        then_branch = t () => (float[1,1] a) { a = ReduceMean <axes = [1]> (x) },
        else_branch = e () => (float[1,1] b) { b = ReduceMin <axes = [1]> (x) }>
      z = local.half (x)
    }
    <domain: "local", opset_import: ["" : 17]> half (v) => (w) { w, rest = Split <axis = 1> (v) })");
  const TensorMap inputs = {{"c", Tensor::from<std::uint8_t>(DType::kBool, {}, {1})},
                            {"x", ramp({1, 4})}};
  const TensorMap before = run_on_cpu(model, inputs);
  convert(model, 22);
  EXPECT_EQ(model.proto().functions(0).opset_import(0).version(), 22);
  EXPECT_NE(find_attribute(model.proto().functions(0).node(0), "num_outputs"), nullptr);
  EXPECT_EQ(op_counts(model)["Constant"], 2);  // the axes, in each body its own
  expect_identical(before, run_on_cpu(model, inputs));
  // Of a function's tensors no type is known, so what its Split took at 22 cannot be checked: the
  // size that it splits is not known either.
  const PassOutcome back = convert(model, 17);
  EXPECT_EQ(back.applied, 0);
  ASSERT_EQ(back.skipped.size(), 1U);
  EXPECT_THAT(back.skipped[0].node, HasSubstr("in function 'half'"));
}

TEST(ConvertOpset, OptionsAndTheSameOpset) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y) { y = Relu (x) })");
  const std::vector<std::string> names = {"convert_opset"};
  EXPECT_THAT(run_passes(model, names, {}).status().message(),
              HasSubstr("needs its option target"));
  EXPECT_THAT(run_passes(model, names, {{"convert_opset.target", "9"}}).status().message(),
              HasSubstr("target is 9, expected 13 to 26"));
  EXPECT_EQ(convert(model, 17).applied, 0);
}

// The example holds LayerNormalization, GridSample, TopK, Resize and control of shapes.
TEST(ConvertOpset, TheExampleThereAndBackIsTheSame) {
  auto loaded = Model::load(kExample);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  Model model = std::move(loaded).value();
  const auto inputs_of = model.inputs();
  TensorMap inputs;
  for (const TensorInfo& info : inputs_of) {
    Shape shape = info.shape;
    for (auto& dim : shape) dim = dim < 0 ? 1 : dim;
    inputs[info.name] = info.dtype == DType::kFloat32
                            ? ramp(shape)
                            : Tensor::from<std::int64_t>(DType::kInt64, shape, {256, 256});
  }
  const TensorMap before = run_on_cpu(model, inputs);
  const auto ops = op_counts(model);
  for (const int target : {22, 19, 17}) {
    const PassOutcome outcome = convert(model, target);
    EXPECT_TRUE(outcome.skipped.empty())
        << target << ": " << outcome.skipped.front().node << ": " << outcome.skipped.front().reason;
    EXPECT_EQ(model.opset(), target);
    expect_identical(before, run_on_cpu(model, inputs));
  }
  EXPECT_EQ(op_counts(model), ops);
  // Below 17 there is no LayerNormalization.
  EXPECT_EQ(convert(model, 16).skipped.size(), 3U);
  run_pass(model, "decompose_layer_normalization");
  const TensorMap decomposed = run_on_cpu(model, inputs);
  for (const int target : {16, 22, 16}) {
    EXPECT_TRUE(convert(model, target).skipped.empty());
    EXPECT_EQ(model.opset(), target);
    expect_identical(decomposed, run_on_cpu(model, inputs));
  }
}

}  // namespace
}  // namespace tenonnx
