// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/status.h"
#include "model/parse_for_test.h"
#include "passes/fusion_test_support.h"

namespace tenonnx {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kPass = "fuse_sampling_locations";

// Two heads of 4 channels on levels of 4 x 6 and 3 x 2, five queries. `offsets`: the shape of the
// locations; `reference`: of the tensor that is cut in two; `product` makes 'm' of 'o' and 'wh'.
struct Form {
  std::string points = "2, 4";
  std::string offsets = "1,5,2,6,2";
  std::string reference = "1,5,1,1,4";
  std::string scale_shape = "6,1", scale = "0.5, 0.5, 0.25, 0.25, 0.25, 0.25";
  std::string product = "a = Mul(o, scale) b = Mul(a, wh) m = Mul(b, half)";
  std::string outputs = "float[1,5,8] y";
  std::string sum = "l = Add(xy, m)";
};

Model model_of(const Form& form) {
  return parse_model(
      R"(<ir_version: 8, opset_import: ["" : 17, "tenonnx" : 1]>
g (float[1,30,8] value, float[)" +
      form.offsets + "] o, float[" + form.reference + "] r, float[1,5,2,6] w) => (" + form.outputs +
      ")\n<int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] last = {-1}, "
      "float half = "
      "{0.5}, float n = {2}, float[" +
      form.scale_shape + "] scale = {" + form.scale + R"(}>
{
  xy = Slice(r, zero, two, last)
  wh = Slice(r, two, four, last)
  )" + form.product +
      "\n  " + form.sum + R"(
  [attention] y = tenonnx.MSDeformAttn <spatial_shapes = [4, 6, 3, 2], points = [)" +
      form.points +
      R"(]>(value, l, w)
})");
}

TensorMap inputs_of(const Model& model) {
  std::mt19937 random(3);
  TensorMap inputs;
  for (const TensorInfo& info : model.inputs()) {
    Tensor tensor(DType::kFloat32, info.shape);
    // Offsets of some pixels, references inside of the image.
    const float low = info.name == "o" ? -3.F : info.name == "r" ? 0.1F : -1.F;
    std::uniform_real_distribution<float> any(low, info.name == "o" ? 3.F : 0.9F);
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.mutable_data<float>()[i] = any(random);
    inputs.emplace(info.name, tensor);
  }
  return inputs;
}

void expect_fused(const Form& form) {
  const Model before = model_of(form);
  Model after = before.clone();
  const PassOutcome outcome = run_pass(after, kPass);
  EXPECT_EQ(outcome.applied, 1);
  EXPECT_THAT(outcome.skipped, IsEmpty()) << outcome.skipped.front().reason;
  const auto counts = op_counts(after);
  EXPECT_FALSE(counts.contains("Mul"));
  EXPECT_FALSE(counts.contains("Add"));
  const TensorMap inputs = inputs_of(before);
  const Tensor a = run_on_cpu(before, inputs).at("y"), b = run_on_cpu(after, inputs).at("y");
  ASSERT_EQ(a.shape(), b.shape());
  // Coordinates of up to 6 pixels in float32, rounded in another order (4 roundings of 2^-24 each),
  // times taps of up to 1 that differ by 2 at most, times 6 points of weight 1.
  for (std::int64_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 6 * 6 * 2 * 4 * 0x1p-24) << i;
}

TEST(FuseSamplingLocations, AsDfineAndDeimWriteIt) { expect_fused({}); }

TEST(FuseSamplingLocations, AsRtDetrWritesIt) {
  Form form;
  form.points = "3, 3";
  form.offsets = "1,5,2,2,3,2";
  form.reference = "1,5,1,1,1,4";
  form.scale_shape = "1";
  form.scale = "3";
  form.product = "a = Div(o, scale) b = Mul(a, wh) m = Mul(b, half)";
  expect_fused(form);
}

TEST(FuseSamplingLocations, AReferenceForEachLevel) {
  Form form;
  form.points = "3, 3";
  form.offsets = "1,5,2,2,3,2";
  form.reference = "1,5,1,2,1,4";
  form.scale_shape = "1";
  form.scale = "0.33333334";
  // 1/2 by a division, 1/3 by a product on the other side.
  form.product = "a = Div(o, n) c = Mul(a, wh) m = Mul(scale, c)";
  expect_fused(form);
}

TEST(FuseSamplingLocations, FactorsInAnyOrder) {
  Form form;
  form.product = "a = Mul(half, o) b = Mul(wh, a) m = Mul(b, scale)";
  form.sum = "l = Add(m, xy)";
  expect_fused(form);
}

// An encoder's: pixels of each level, one reference a level.
Form encoder() {
  Form form;
  form.points = "3, 3";
  form.offsets = "1,5,2,2,3,2";
  form.reference = "1,5,1,2,1,2";
  form.scale_shape = "1,1,1,2,1,2";
  form.scale = "6, 4, 2, 3";
  form.product = "m = Div(o, scale)";
  form.sum = "l = Add(r, m)";
  return form;
}

TEST(FuseSamplingLocations, AsEncodersWriteIt) {
  expect_fused(encoder());
  Form form = encoder();
  form.reference = "1,5,1,1,1,2";
  form.scale = "0.16666667, 0.25, 0.5, 0.33333334";
  form.product = "c = Mul(scale, o) m = Cast <to = 1>(c)";
  expect_fused(form);
}

void expect_refused(const Form& form, const std::string& reason) {
  Model model = model_of(form);
  const PassOutcome outcome = run_pass(model, kPass);
  EXPECT_EQ(outcome.applied, 0);
  ASSERT_THAT(outcome.skipped, SizeIs(1));
  EXPECT_THAT(outcome.skipped.front().node, HasSubstr("MSDeformAttn 'attention'"));
  EXPECT_THAT(outcome.skipped.front().reason, HasSubstr(reason));
}

TEST(FuseSamplingLocations, Refusals) {
  Form form;
  form.scale = "0.5, 0.5, 0.5, 0.25, 0.25, 0.25";
  expect_refused(
      form, "offsets of point 2 are multiplied by 0.25, not by 0.125: 1/2 / 4 points of the level");
  form = {};
  form.product =
      "q = Relu(r) s = Slice(q, two, four, last) a = Mul(o, scale) b = Mul(a, s) m = Mul(b, half)";
  expect_refused(form, "its centres are of 'r', its sizes of 'q'");
  form = {};
  form.outputs = "float[1,5,8] y, float[1,5,2,6,2] l";
  expect_refused(form, "'l'");
  form = encoder();
  form.scale = "4, 6, 2, 3";  // height and width exchanged
  expect_refused(form, "offsets of point 0 are multiplied by 0.25, not by 0.166667: 1 / 6 pixels");
  form = {};
  form.reference = "1,5,2,1,4";  // one a head
  expect_refused(form, "is not one reference of 4 coordinates a query");
}

// Something else than centre and size: no site.
TEST(FuseSamplingLocations, OtherSumsAreLeftAlone) {
  Form form;
  form.product = "m = Relu(o)";
  Model model = model_of(form);
  const PassOutcome outcome = run_pass(model, kPass);
  EXPECT_EQ(outcome.applied, 0);
  EXPECT_THAT(outcome.skipped, IsEmpty());
}

}  // namespace
}  // namespace tenonnx
