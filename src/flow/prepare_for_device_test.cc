// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/prepare_for_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "model/text.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ForDevice : public ::testing::Test {
 protected:
  ForDevice() {
    auto device = find_device("qcs9075");
    EXPECT_TRUE(device.ok()) << device.status().message();
    device_ = std::move(*device);
  }
  DevicePreparation prepare(const std::string& text) {
    auto model = model_from_text(text);
    EXPECT_TRUE(model.ok()) << model.status().message();
    auto random = InputSource::random(model->inputs(), Contract(), 1, 1);
    EXPECT_TRUE(random.ok()) << random.status().message();
    const TensorInputs inputs = TensorInputs::from_source(std::move(*random));
    auto made = prepare_for_device(*model, device_, inputs, options_);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? std::move(*made) : DevicePreparation();
  }
  // As another device's file may say.
  void opsets(std::int64_t least, std::int64_t most) {
    for (SupportRule& rule : device_.supported) {
      rule.min_opset = least;
      rule.max_opset = most;
    }
  }
  Device device_;
  DevicePreparationOptions options_;
};

std::vector<std::string> types_of(const Model& model) {
  std::vector<std::string> out;
  for (const auto& node : model.proto().graph().node()) out.push_back(node.op_type());
  return out;
}

constexpr const char* kGelu = R"(
    g (float[1,4] x) => (float[1,4] y)
    <float r = {1.4142135}, float one = {1}, float half = {0.5}> {
      d = Div (x, r) e = Erf (d) a = Add (e, one) m = Mul (x, a) y = Mul (m, half) })";

TEST_F(ForDevice, RankSixIsCollapsedAndProved) {
  const DevicePreparation made = prepare(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,24] x) => (float[4,24] y)
    <int64[6] six = {1, 4, 2, 3, 2, 2}, int64[2] two = {4, 24}> {
      a = Reshape (x, six) b = Mul (a, a) c = Relu (b) y = Reshape (c, two) })");
  ASSERT_EQ(made.passes.size(), 1U);
  const ChosenPass& pass = made.passes[0];
  EXPECT_EQ(pass.run.pass->name, "collapse_rank");
  EXPECT_EQ(pass.why, "4 nodes above rank 5, first 'a'");
  EXPECT_GT(pass.run.applied, 0);
  ASSERT_EQ(pass.run.proofs.size(), 1U);
  EXPECT_EQ(pass.run.verdict, Verdict::kPass);
  EXPECT_GT(pass.run.proofs[0].regions, 0);
  EXPECT_FALSE(made.differ) << "it is bitwise";
  EXPECT_THAT(made.not_taken, IsEmpty());
  EXPECT_THAT(made.notes, IsEmpty());
  EXPECT_THAT(describe(made.passes), AllOf(HasSubstr("collapse_rank"), HasSubstr("PASS (")));
  const Json json = to_json(pass);
  EXPECT_EQ(json["verdict"], "PASS");
  EXPECT_EQ(json["class"], "bitwise");
  EXPECT_FALSE(json["proof"].contains("seconds"));
}

// The compiler takes no subgraph of Shape and constants.
TEST_F(ForDevice, ShapeArithmeticIsFoldedAndProved) {
  constexpr const char* kShapes = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,12] x) => (float[2,12] y) <int64[2] size = {4, 6}> {
      s = Shape (x) a = Reshape (x, size) b = Relu (a) y = Reshape (b, s) })";
  const DevicePreparation made = prepare(kShapes);
  ASSERT_EQ(made.passes.size(), 1U);
  EXPECT_EQ(made.passes[0].run.pass->name, "fold_constants");
  EXPECT_EQ(made.passes[0].run.verdict, Verdict::kPass);
  EXPECT_THAT(types_of(made.plain), ElementsAre("Reshape", "Relu", "Reshape"));
  options_.fold_constants = false;
  const DevicePreparation kept = prepare(kShapes);
  EXPECT_THAT(kept.passes, IsEmpty());
  ASSERT_EQ(kept.not_taken.size(), 1U);
  EXPECT_EQ(kept.not_taken[0].op_type, "Shape");
}

TEST_F(ForDevice, WhatNoPassIsNeededForIsLeftAlone) {
  const DevicePreparation made = prepare(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4] x) => (float[1,4] y) { y = Relu (x) })");
  EXPECT_THAT(made.passes, IsEmpty());
  EXPECT_THAT(made.notes, IsEmpty());
}

TEST_F(ForDevice, WhatTheFileDoesNotTakeIsNamed) {
  const DevicePreparation made = prepare(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4,8,8] x, float[1,8,8,2] grid) => (float[1,4,8,8] y, float[1,4,8,8] z, float[1,4] d) {
      n = GridSample <mode = "nearest"> (x, grid)
      y = GridSample <mode = "bicubic"> (n, grid)
      z = GridSample <mode = "bicubic"> (y, grid) d = Det (x) })");
  ASSERT_EQ(made.notes.size(), 2U);
  EXPECT_THAT(made.notes[0], HasSubstr("devices/qcs9075.json does not take 1 Det, first 'd'"));
  EXPECT_THAT(made.notes[1],
              AllOf(HasSubstr("2 GridSample, first 'y': mode is 'bicubic', not 'bilinear'"),
                    HasSubstr("rewrite --pass replace_grid_sample_gather replaces it")));
  ASSERT_EQ(made.not_taken.size(), 2U);
  EXPECT_THAT(made.not_taken[1].nodes, ElementsAre("y", "z")) << "nearest is taken";
  const Json json = to_json(made.not_taken);
  EXPECT_EQ(json[1]["operator"], "GridSample");
  EXPECT_EQ(json[1]["nodes"], Json({"y", "z"}));
}

TEST_F(ForDevice, OneOperatorMayBeRefusedForSeveralReasons) {
  const DevicePreparation made = prepare(R"(<ir_version: 8, opset_import: ["" : 20]>
    g (float[1,4,8,8] x, float[1,8,8,2] grid, float[1,2,4,4,4] v, float[1,4,4,4,3] points)
      => (float[1,4,8,8] y, float[1,2,4,4,4] z) {
      y = GridSample <mode = "cubic"> (x, grid)
      z = GridSample <mode = "linear"> (v, points) })");
  ASSERT_EQ(made.not_taken.size(), 2U);
  EXPECT_THAT(made.not_taken[0].reason, HasSubstr("mode is 'cubic'"));
  EXPECT_THAT(made.not_taken[1].reason, HasSubstr("'v' has rank 5, above 4"));
}

// Where the opset has no Gelu the compiler fuses the chain; alone it takes no Erf.
TEST_F(ForDevice, ErfIsTakenWithinGeluAlone) {
  const DevicePreparation within =
      prepare(std::string(R"(<ir_version: 8, opset_import: ["" : 17]>)") + kGelu);
  EXPECT_THAT(within.passes, IsEmpty());
  EXPECT_THAT(within.notes, IsEmpty());
  const DevicePreparation alone = prepare(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4] x) => (float[1,4] y) { y = Erf (x) })");
  EXPECT_THAT(alone.notes,
              ElementsAre(AllOf(HasSubstr("1 Erf, first 'y'"),
                                HasSubstr("within a GELU it is taken, alone it is not"))));
}

// Erf, then Add and Mul as in a GELU, of other constants.
TEST_F(ForDevice, WhatIsNearlyAGeluIsNone) {
  std::string text = std::string(R"(<ir_version: 8, opset_import: ["" : 17]>)") + kGelu;
  text.replace(text.find("1.4142135"), 9, "1.5");
  const DevicePreparation made = prepare(text);
  ASSERT_EQ(made.not_taken.size(), 1U);
  EXPECT_THAT(made.not_taken[0].reason, HasSubstr("nearly a GELU: "));
}

TEST_F(ForDevice, WhereTheOpsetHasGeluErfIsFusedAndProved) {
  const DevicePreparation made =
      prepare(std::string(R"(<ir_version: 9, opset_import: ["" : 20]>)") + kGelu);
  ASSERT_EQ(made.passes.size(), 1U);
  EXPECT_EQ(made.passes[0].run.pass->name, "fuse_gelu");
  EXPECT_THAT(made.passes[0].why, HasSubstr("1 Erf of a GELU, first 'e'"));
  EXPECT_EQ(made.passes[0].run.verdict, Verdict::kPass);
  EXPECT_TRUE(made.differ);
  EXPECT_THAT(types_of(made.compiled), ElementsAre("Gelu"));
  EXPECT_EQ(made.plain.proto().graph().node_size(), 5) << "the cpu keeps every bit";
  ASSERT_GE(made.checks.size(), 2U) << "its proof and the whole graph's";
  EXPECT_EQ(made.checks[0].name, "prepared graph: proof of fuse_gelu");
  for (const Check& check : made.checks) EXPECT_EQ(check.verdict, Verdict::kPass) << to_text(check);
  EXPECT_THAT(made.notes, IsEmpty());
  // Where every node may be named by a list, the graph keeps its nodes.
  options_.bitwise_only = true;
  const DevicePreparation kept =
      prepare(std::string(R"(<ir_version: 9, opset_import: ["" : 20]>)") + kGelu);
  EXPECT_FALSE(kept.differ);
  EXPECT_THAT(kept.notes, ElementsAre(HasSubstr("fuse_gelu are left out")));
}

TEST_F(ForDevice, AnOpsetBelowTheRulesIsRaised) {
  opsets(18, 20);
  const DevicePreparation made = prepare(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4] x) => (float[1,4] y) { a = Relu (x) y = Exp (a) })");
  ASSERT_EQ(made.passes.size(), 1U);
  EXPECT_EQ(made.passes[0].run.pass->name, "convert_opset");
  EXPECT_EQ(made.passes[0].why, "of 2 nodes the rules take 0 at opset 17 and 2 at opset 18");
  EXPECT_EQ(made.passes[0].run.verdict, Verdict::kPass);
  EXPECT_EQ(made.compiled.opset(), 18) << "the nearest";
  EXPECT_EQ(made.plain.opset(), 17);
  EXPECT_THAT(made.not_taken, IsEmpty());
}

TEST_F(ForDevice, AnOpsetAboveTheRulesIsLoweredWhereThatCanBe) {
  opsets(11, 16);
  const DevicePreparation made = prepare(R"(<ir_version: 9, opset_import: ["" : 20]>
    g (float[1,4] x) => (float[1,4] y) { y = Relu (x) })");
  EXPECT_EQ(made.compiled.opset(), 16);
  EXPECT_THAT(made.not_taken, IsEmpty());
  // There is no LayerNormalization before opset 17: the model stays, and says so.
  const DevicePreparation stays = prepare(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4] x) => (float[1,4] y) <float[4] scale = {1, 1, 1, 1}> {
      y = LayerNormalization (x, scale) })");
  EXPECT_EQ(stays.compiled.opset(), 17);
  EXPECT_FALSE(stays.differ);
  ASSERT_EQ(stays.notes.size(), 2U);
  EXPECT_THAT(stays.notes[0],
              AllOf(HasSubstr("convert_opset changed nothing"), HasSubstr("LayerNormalization")));
  EXPECT_THAT(stays.notes[1], HasSubstr("opset 17 is outside of 11 to 16"));
}

TEST_F(ForDevice, AFileWithoutRulesAsksForNothing) {
  device_.supported.clear();
  EXPECT_THAT(prepare(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4] x) => (float[1,4] y) { y = Erf (x) })")
                  .notes,
              IsEmpty());
}

}  // namespace
}  // namespace tenonnx
