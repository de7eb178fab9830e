// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[batch,3,H,W] images, int64[batch,2] sizes) => (float[batch,C] y, int64[batch,2] s)
  <float[1,3,1,1] w = {1, 2, 3}, float[batch,3,H,W] m> {
    m = Mul (images, w)
    y = ReduceMean <axes = [2, 3], keepdims = 0> (m)
    s = Identity (sizes)
  })";

Status error(Model& model, const PassOptions& options) {
  const std::vector<std::string> names = {"fix_input_shapes"};
  return run_passes(model, names, options).status();
}

TEST(FixInputShapes, MakesDynamicDimensionsStatic) {
  Model model = model_from_text(kModel);
  const PassOutcome outcome = run_pass(model, "fix_input_shapes", {{"images", "2x3x8x6"}});
  EXPECT_EQ(outcome.applied, 1);
  EXPECT_EQ(model.inputs()[0].shape, (Shape{2, 3, 8, 6}));
  // The symbol "batch" has a value now, wherever it stands.
  EXPECT_EQ(model.inputs()[1].shape, (Shape{2, 2}));
  EXPECT_EQ(model.outputs()[0].shape, (Shape{2, 3}));
  EXPECT_EQ(model.outputs()[1].shape, (Shape{2, 2}));
  const TensorMap out = run_on_cpu(
      model, {{"images", ramp({2, 3, 8, 6})},
              {"sizes", Tensor::from<std::int64_t>(DType::kInt64, {2, 2}, {1, 2, 3, 4})}});
  EXPECT_EQ(out.at("y").shape(), (Shape{2, 3}));
  EXPECT_EQ(run_pass(model, "fix_input_shapes", {{"images", "2x3x8x6"}}).applied, 0);
}

TEST(FixInputShapes, UnknownInputListsThoseThatExist) {
  Model model = model_from_text(kModel);
  const Status status = error(model, {{"image", "1x3x8x6"}});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("no input 'image'"),
                                      HasSubstr("'images' [?,3,?,?]"), HasSubstr("'sizes' [?,2]")));
}

TEST(FixInputShapes, RankAndFixedDimensionsMustFit) {
  Model model = model_from_text(kModel);
  EXPECT_THAT(
      error(model, {{"images", "3x8x6"}}).message(),
      AllOf(HasSubstr("'images' has rank 4 [batch,3,H,W]"), HasSubstr("[3,8,6] of rank 3")));
  EXPECT_THAT(error(model, {{"images", "1x4x8x6"}}).message(),
              AllOf(HasSubstr("dimension 1 of input 'images' is fixed at 3"), HasSubstr("got 4")));
  EXPECT_THAT(error(model, {{"images", "1x3x8x6"}, {"sizes", "2x2"}}).message(),
              HasSubstr("dimension 'batch' is 1 in input 'images' and 2 in input 'sizes'"));
  EXPECT_EQ(model.inputs()[0].shape, (Shape{-1, 3, -1, -1}));
}

TEST(FixInputShapes, ShapesAreSizesFromOne) {
  Model model = model_from_text(kModel);
  for (const char* wrong : {"", "1x3x0x6", "1x3x-1x6", "1x3xHxW", "1x3x8x", "x1", "1 3", "1x3x8x6 ",
                            "1x3x8x99999999999999999999"}) {
    EXPECT_THAT(error(model, {{"images", wrong}}).message(), HasSubstr("expected sizes from 1"))
        << wrong;
  }
  EXPECT_THAT(error(model, {}).message(), HasSubstr("no input shape given"));
}

TEST(FixInputShapes, BakedReshapesAreReported) {
  constexpr const char* kBaked = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,4,8] x) => (float[A,B] y) <int64[2] one = {1, 32}, int64[2] fine = {0, -1}> {
      f = Reshape (x, fine)
      y = Reshape (f, one)
    })";
  Model model = model_from_text(kBaked);
  const Status status = error(model, {{"x", "2x4x8"}});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("1 Reshape node holds"), HasSubstr("'node_1' makes [1,32] of [2,32]"),
                    HasSubstr("export")));
  run_pass(model, "fix_input_shapes", {{"x", "1x4x8"}});
  EXPECT_EQ(model.outputs()[0].shape, (Shape{1, 32}));
}

// What was recorded for the dynamic shape must not contradict the static one.
TEST(FixInputShapes, RecordedShapesAreInferredAnew) {
  Model model = model_from_text(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,4] x) => (float[M,4] y) <float[NN,4] m> {
      m = Concat <axis = 0> (x, x)
      y = Relu (m)
    })");
  run_pass(model, "fix_input_shapes", {{"x", "3x4"}});
  EXPECT_EQ(model.outputs()[0].shape, (Shape{6, 4}));
  EXPECT_EQ(run_on_cpu(model, {{"x", ramp({3, 4})}}).at("y").shape(), (Shape{6, 4}));
}

}  // namespace
}  // namespace tenonnx
