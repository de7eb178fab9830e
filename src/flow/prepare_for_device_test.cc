// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "flow/prepare_for_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <string>

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
    model_ = std::move(*model);
    auto made = prepare_for_device(model_, device_);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? std::move(*made) : DevicePreparation();
  }
  Device device_;
  Model model_;
};

TEST_F(ForDevice, RankSixIsCollapsed) {
  const DevicePreparation made = prepare(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,24] x) => (float[4,24] y)
    <int64[6] six = {1, 4, 2, 3, 2, 2}, int64[2] two = {4, 24}> {
      a = Reshape (x, six) b = Mul (a, a) c = Relu (b) y = Reshape (c, two) })");
  ASSERT_EQ(made.passes.size(), 1U);
  EXPECT_EQ(made.passes[0].name, "collapse_rank");
  EXPECT_GT(made.passes[0].outcome.applied, 0U);
  EXPECT_THAT(made.notes, IsEmpty());
}

TEST_F(ForDevice, WhatNoPassIsNeededForIsLeftAlone) {
  const DevicePreparation made = prepare(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4] x) => (float[1,4] y) { y = Relu (x) })");
  EXPECT_THAT(made.passes, IsEmpty());
  EXPECT_THAT(made.notes, IsEmpty());
}

TEST_F(ForDevice, WhatTheFileDoesNotTakeIsNamed) {
  const DevicePreparation made = prepare(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4,8,8] x, float[1,8,8,2] grid) => (float[1,4,8,8] y, float[1,4] d) {
      y = GridSample <mode = "bicubic"> (x, grid) d = Det (x) })");
  ASSERT_EQ(made.notes.size(), 2U);
  EXPECT_THAT(made.notes[0], HasSubstr("devices/qcs9075.json does not take 1 Det, first 'd'"));
  EXPECT_THAT(made.notes[1],
              AllOf(HasSubstr("1 GridSample"), HasSubstr("bicubic"),
                    HasSubstr("rewrite --pass replace_grid_sample_gather replaces it")));
}

TEST_F(ForDevice, ErfIsTakenWithinGeluAlone) {
  constexpr const char* kGelu = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4] x) => (float[1,4] y)
    <float r = {1.4142135}, float one = {1}, float half = {0.5}> {
      d = Div (x, r) e = Erf (d) a = Add (e, one) m = Mul (x, a) y = Mul (m, half) })";
  EXPECT_THAT(prepare(kGelu).notes, IsEmpty());
  const DevicePreparation alone = prepare(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,4] x) => (float[1,4] y) { y = Erf (x) })");
  EXPECT_THAT(alone.notes,
              ElementsAre(AllOf(HasSubstr("1 Erf, first 'y'"), HasSubstr("fuse_gelu"))));
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
