// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "bench/boundary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenonnx {
namespace {

using testing::ElementsAre;

TensorInfo named(const char* name) { return {name, DType::kFloat32, {2}}; }

TEST(BoundariesTest, EveryPairOfSegmentsThatShareATensor) {
  Manifest manifest;
  manifest.segments = {
      {"first", "first.onnx", "cpu", {named("images")}, {named("a"), named("b")}},
      {"second", "second.onnx", "cpu", {named("a")}, {named("c")}},
      {"third", "third.onnx", "cpu", {named("b"), named("c"), named("a"), named("size")}, {}}};
  const auto boundaries = boundaries_of(manifest);
  ASSERT_EQ(boundaries.size(), 3u);
  EXPECT_EQ(boundaries[0].from, 0u);
  EXPECT_EQ(boundaries[0].to, 1u);
  EXPECT_THAT(boundaries[0].tensors, ElementsAre("a"));
  EXPECT_EQ(boundaries[1].from, 0u);
  EXPECT_EQ(boundaries[1].to, 2u);
  EXPECT_THAT(boundaries[1].tensors, ElementsAre("b", "a"));
  EXPECT_EQ(boundaries[2].from, 1u);
  EXPECT_THAT(boundaries[2].tensors, ElementsAre("c"));
}

TEST(BoundariesTest, OneSegmentHasNone) {
  Manifest manifest;
  manifest.segments = {{"model", "model.onnx", "cpu", {named("images")}, {named("labels")}}};
  EXPECT_TRUE(boundaries_of(manifest).empty());
}

TEST(BoundaryCopyTest, CopiesWhatTheTensorsHoldNow) {
  Tensor a = Tensor::from<float>(DType::kFloat32, {2}, {1, 2});
  const Tensor b = Tensor::from<std::uint16_t>(DType::kFloat16, {3}, {7, 8, 9});
  BoundaryCopy crossing({a, b});
  EXPECT_EQ(crossing.bytes(), 2 * 4 + 3 * 2u);
  a.mutable_data<float>()[1] = 5;
  EXPECT_NE(crossing.copies()[0].raw(), a.raw());
  crossing.copy();
  EXPECT_EQ(crossing.copies()[0].data<float>()[1], 5);
  EXPECT_EQ(crossing.copies()[1].data<std::uint16_t>()[2], 9);
}

}  // namespace
}  // namespace tenonnx
