// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/proof_grids.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

// A picture whose values are its columns: the output is the coordinate in pixels.
TEST(DisturbGrids, MovesCoordinatesByUnitsInTheLastPlace) {
  const Model model = model_from_text(
      "<ir_version: 9, opset_import: [\"\" : 17]> "
      "g (float[1,1,2,64] v, float[1,1,97,2] x) => (float[1,1,1,97] y) "
      "<float one = {1}> { g = Sub (x, one) y = GridSample (v, g) }");
  Model moved = model.clone();
  ASSERT_TRUE(disturb_grids(moved, 1).ok());
  Tensor v(DType::kFloat32, {1, 1, 2, 64}), x(DType::kFloat32, {1, 1, 97, 2});
  for (int i = 0; i < 128; ++i) v.mutable_data<float>()[i] = static_cast<float>(i % 64);
  for (int i = 0; i < 194; ++i)
    x.mutable_data<float>()[i] = i % 2 == 0 ? 0.013F * static_cast<float>(i / 2) : 1.0F;
  const TensorMap inputs = {{"v", v.clone()}, {"x", x.clone()}};
  const TensorMap before = run_on_cpu(model, inputs), after = run_on_cpu(moved, inputs);
  const float* a = before.at("y").data<float>();
  const float* b = after.at("y").data<float>();
  int differing = 0;
  for (int i = 0; i < 97; ++i) {
    // Two units of a coordinate below 1, 2^-23, times 32 pixels; then the arithmetic of sampling
    // rounds values of up to 64 a few times.
    EXPECT_LE(std::fabs(a[i] - b[i]), 32 * 0x1p-23 + 8 * 0x1p-18) << i;
    differing += a[i] != b[i] ? 1 : 0;
  }
  EXPECT_GT(differing, 10);
}

TEST(DisturbGrids, LeavesOtherGraphsAlone) {
  Model model = model_from_text(
      "<ir_version: 9, opset_import: [\"\" : 17]> g (float[4] x) => (float[4] y) { y = Neg (x) }");
  const std::string before = model.serialize().value();
  ASSERT_TRUE(disturb_grids(model, 1).ok());
  EXPECT_EQ(model.serialize().value(), before);
}

// No shape, no noise: the graph stays one that runs.
TEST(DisturbGrids, LeavesGridsOfUnknownShape) {
  Model model = model_from_text(
      "<ir_version: 9, opset_import: [\"\" : 17]> g (float[1,1,2,4] v, float[1,N,1,2] g) "
      "=> (float[1,1,N,1] y) { y = GridSample (v, g) }");
  ASSERT_TRUE(disturb_grids(model, 1).ok());
  EXPECT_EQ(model.proto().graph().node_size(), 1);
}

}  // namespace
}  // namespace tenonnx
