// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "passes/written_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/status.h"
#include "passes/sampling_forms_for_test.h"
#include "passes/test_support.h"

namespace tenonnx {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kChannels = 3, kHeight = 6, kWidth = 10, kRows = 5, kColumns = 7;

// Bilinear sampling by hand: Floor, Cast, Gather, masks and weights.
Model bilinear(GatherFault fault, bool align_corners = false) {
  GatherForm form;
  form.prefix = "f_";
  form.value = "image";
  form.x = "gx";
  form.y = "gy";
  form.out = "y";
  form.channels = kChannels;
  form.height = kHeight;
  form.width = kWidth;
  form.out_height = kRows;
  form.out_width = kColumns;
  form.align_corners = align_corners;
  form.fault = fault;
  const FormText text = gather_form(form);
  return model_from_text(fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1,{0},{1},{2}] image, "
      "float[1,{3},{4},2] grid) => (float[1,{0},{3},{4}] y) "
      "<{5}, int64 first = {{0}}, int64 second = {{1}}> {{ gx = Gather <axis = 3> (grid, first) "
      "gy = Gather <axis = 3> (grid, second) {6} }}",
      kChannels, kHeight, kWidth, kRows, kColumns, text.constants, text.nodes));
}

TEST(WrittenSampling, FindsABilinearOne) {
  const auto found = find_written_sampling(bilinear(GatherFault::kNone));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].image, "image");
  EXPECT_EQ(found[0].coordinates, "grid");
  EXPECT_EQ(found[0].samples, "y");
  EXPECT_EQ(found[0].channels, kChannels);
  EXPECT_EQ(found[0].height, kHeight);
  EXPECT_EQ(found[0].width, kWidth);
  EXPECT_FALSE(found[0].discrete);
}

// What only looks like it.
TEST(WrittenSampling, AnotherFunctionIsNotFound) {
  for (const GatherFault fault :
       {GatherFault::kSwappedAxes, GatherFault::kHalfPixelShift, GatherFault::kAlignCorners,
        GatherFault::kClampPoint, GatherFault::kReplicateEdge, GatherFault::kNoHalfPixel,
        GatherFault::kSizesSwapped, GatherFault::kRowStride, GatherFault::kUnbounded})
    EXPECT_THAT(find_written_sampling(bilinear(fault)), IsEmpty()) << static_cast<int>(fault);
  EXPECT_THAT(find_written_sampling(bilinear(GatherFault::kNone, true)), IsEmpty());
}

TEST(WrittenSampling, BecomesGridSample) {
  const Model before = bilinear(GatherFault::kNone);
  Model after = before.clone();
  write_grid_samples(after, find_written_sampling(before));
  EXPECT_EQ(op_types(after), (std::vector<std::string>{"Reshape", "GridSample"}));
  TensorMap inputs = {{"image", ramp({1, kChannels, kHeight, kWidth})},
                      {"grid", ramp({1, kRows, kColumns, 2})}};
  const Tensor a = run_on_cpu(before, inputs).at("y"), b = run_on_cpu(after, inputs).at("y");
  for (std::int64_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-5) << i;
}

// One level of RT-DETRv2's "discrete": the pixel at int(location * size + 1/2). Two heads of three
// channels, five queries of four points.
struct Discrete {
  std::string size = "10, 6";  // that the locations are multiplied by: width, height
  int last_x = 9, last_y = 5;  // that the indices are bound to
  int stride = 10;
};

Model discrete(const Discrete& d = {}) {
  return model_from_text(fmt::format(
      "<ir_version: 9, opset_import: [\"\" : 17]> "
      "g (float[2,3,6,10] image, float[2,5,4,2] locations, float[2,1,5,4] weights) "
      "=> (float[2,3,5] y) "
      "<float[1,2] size = {{{}}}, float half = {{0.5}}, int64 first = {{0}}, int64 second = {{1}}, "
      "int64 zero = {{0}}, int64 last_x = {{{}}}, int64 last_y = {{{}}}, int64 stride = {{{}}}, "
      "int64[3] rows = {{2, 1, 20}}, int64[3] flat = {{2, 3, 60}}, int64[3] all = {{2, 3, 20}}, "
      "int64[4] points = {{2, 3, 5, 4}}, int64[1] last = {{-1}}> "
      "{{ scaled = Mul (locations, size) at = Add (scaled, half) whole = Cast <to = 7> (at) "
      "x0 = Gather <axis = 3> (whole, first) x = Clip (x0, zero, last_x) "
      "y0 = Gather <axis = 3> (whole, second) yc = Clip (y0, zero, last_y) "
      "row = Mul (yc, stride) index = Add (row, x) indices = Reshape (index, rows) "
      "every = Expand (indices, all) pixels = Reshape (image, flat) "
      "read = GatherElements <axis = 2> (pixels, every) samples = Reshape (read, points) "
      "weighted = Mul (samples, weights) y = ReduceSum <keepdims = 0> (weighted, last) }}",
      d.size, d.last_x, d.last_y, d.stride));
}

TEST(WrittenSampling, FindsADiscreteOne) {
  const auto found = find_written_sampling(discrete());
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].coordinates, "locations");
  EXPECT_EQ(found[0].samples, "samples");
  EXPECT_EQ(found[0].height, 6);
  EXPECT_EQ(found[0].width, 10);
  EXPECT_TRUE(found[0].discrete);
  // Both axes bound by H - 1, as the first implementations had it; H for W; rows of another length.
  EXPECT_THAT(find_written_sampling(discrete({"10, 6", 5, 5, 10})), IsEmpty());
  EXPECT_THAT(find_written_sampling(discrete({"6, 10", 9, 5, 10})), IsEmpty());
  EXPECT_THAT(find_written_sampling(discrete({"10, 6", 9, 5, 6})), IsEmpty());
}

// The operator takes the pixel of every index that the graph takes, also where it steps: locations
// on and beside k / size.
TEST(WrittenSampling, TheDiscreteOperatorTakesTheSameIndices) {
  const Model before = discrete();
  Model after = before.clone();
  const PassOutcome outcome = run_pass(after, "replace_ms_deform_attn");
  ASSERT_EQ(outcome.applied, 1);
  EXPECT_EQ(outcome.total, "1 layer x 1 level = 1 samplings written with Gather");
  const auto& nodes = after.proto().graph().node();
  const auto fused = std::find_if(nodes.begin(), nodes.end(),
                                  [](const auto& n) { return n.op_type() == "MSDeformAttn"; });
  ASSERT_NE(fused, nodes.end());
  EXPECT_EQ(attribute_or(*fused, "mode", ""), "discrete");
  EXPECT_FALSE(op_counts(after).contains("GridSample"));
  EXPECT_FALSE(op_counts(after).contains("GatherElements"));
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    Tensor locations(DType::kFloat32, {2, 5, 4, 2});
    for (std::int64_t i = 0; i < locations.size(); ++i) {
      const float size = i % 2 == 0 ? 10 : 6;
      float at = (static_cast<float>(random() % 14) - 1.5F) / size;
      for (unsigned k = random() % 3; k > 0; --k)
        at = std::nextafter(at, round % 2 == 0 ? 100.0F : -100.0F);
      locations.mutable_data<float>()[i] = at;
    }
    // One pixel counts in each query, so that its index is seen.
    Tensor weights(DType::kFloat32, {2, 1, 5, 4});
    for (std::int64_t q = 0; q < 10; ++q)
      weights.mutable_data<float>()[4 * q + static_cast<std::int64_t>(random() % 4)] = 1;
    Tensor image(DType::kFloat32, {2, 3, 6, 10});
    for (std::int64_t i = 0; i < image.size(); ++i)
      image.mutable_data<float>()[i] = static_cast<float>(i + 1);
    const TensorMap inputs = {{"image", image}, {"locations", locations}, {"weights", weights}};
    expect_identical(run_on_cpu(before, inputs), run_on_cpu(after, inputs));
  }
}

}  // namespace
}  // namespace tenonnx
