// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "numerics/inject.h"

#include <cmath>

#include "flow/compare_for_test.h"

namespace tenonnx {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 4] x) => (float[1, 4] y) <float k = {2}> {
  m = Mul(x, k)
  y = Add(m, x)
})";

class Inject : public CompareFixture {
 protected:
  InjectOptions asking(const std::string& at, const std::string& error, const Tensor& x) {
    InjectOptions made;
    made.common = options(save("a.onnx", kModel), {{"x", x}});
    made.at = at;
    made.error = error;
    made.doses = {2, 1};
    return made;
  }
  Result<InjectResult> run(const std::string& at, const std::string& error) {
    return inject(asking(at, error, floats({1, 4}, {1, 2, 3, 4})));
  }
  std::string message(const std::string& at, const std::string& error) {
    const auto result = run(at, error);
    return result.ok() ? "no error" : result.status().message();
  }
};

TEST_F(Inject, TheErrorGoesThroughTheRestOfTheGraph) {
  // m = 2x becomes 3x at dose 1, 4x at dose 2; y = 3x becomes 4x, 5x.
  const auto result = run("m", "scale:1.5");
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->doses.size(), 2U);
  EXPECT_EQ(result->doses[0].dose, 1);
  EXPECT_NEAR(result->doses[0].relative_l2, 0.5, 1e-7);
  EXPECT_NEAR(result->doses[0].outputs.at(0).second, 1.0 / 3, 1e-7);
  EXPECT_NEAR(result->doses[1].outputs.at(0).second, 2.0 / 3, 1e-7);
  EXPECT_EQ(result->node, "Mul (makes 'm')");
  EXPECT_FALSE(result->has_task);
}

TEST_F(Inject, Files) {
  const auto added = run("m", save("e.npz", {{"m", floats({1, 4}, {1, 0, 0, 0})}}).string());
  ASSERT_TRUE(added.ok()) << added.status().message();
  EXPECT_NEAR(added->doses[0].outputs.at(0).second, 1 / std::sqrt(9.0 + 36 + 81 + 144), 1e-7);
  const auto replaced =
      run("m", "replace:" + save("f.npz", {{"any", floats({1, 4}, {2, 4, 6, 8})}}).string());
  ASSERT_TRUE(replaced.ok()) << replaced.status().message();
  EXPECT_EQ(replaced->doses[0].outputs.at(0).second, 0);  // what is there already
}

TEST_F(Inject, RoundingAndNoise) {
  const auto rounded = run("m", "round:bf16");
  ASSERT_TRUE(rounded.ok()) << rounded.status().message();
  EXPECT_EQ(rounded->doses[0].relative_l2, 0);  // small integers are stored exactly
  const auto noise = run("m", "gauss:0.1"), again = run("m", "gauss:0.1");
  ASSERT_TRUE(noise.ok() && again.ok());
  EXPECT_GT(noise->doses[0].relative_l2, 0.01);
  EXPECT_NEAR(noise->doses[1].relative_l2, 2 * noise->doses[0].relative_l2, 1e-6);
  EXPECT_EQ(noise->doses[0].relative_l2, again->doses[0].relative_l2);
}

// As the arithmetic of a device file: what float16 cannot hold is a number there.
TEST_F(Inject, RoundingAsADeviceStores) {
  // 2e5 at m; HTP keeps what is not the result of a product up to 131008.
  const Tensor x = floats({1, 4}, {1, 2, 3, 1e5F});
  const auto plain = inject(asking("m", "round:fp16", x));
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_TRUE(std::isinf(plain->doses[0].relative_l2));
  EXPECT_EQ(plain->doses[0].not_finite, 1);
  EXPECT_THAT(describe(*plain), HasSubstr("note: 1 element of 'm' is beyond"));
  const auto device = inject(asking("m", "round:htp-v73", x));
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_NEAR(device->doses[0].relative_l2, (2e5 - 131008) / 2e5, 1e-6);
  EXPECT_EQ(device->doses[0].not_finite, 0);
  InjectedError error;
  error.device = "htp-v73";
  ASSERT_TRUE(round_as_made_by("MatMul", error).ok());
  const double product = error.rounding.overflow.max;
  ASSERT_TRUE(round_as_made_by("Mul", error).ok());
  EXPECT_EQ(error.rounding.overflow.max, 131008);
  EXPECT_NE(product, 131008);
}

// Doses that make no difference are one row.
TEST_F(Inject, EqualRowsAreOne) {
  const auto result = run("m", "scale:1");
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_THAT(describe(*result), HasSubstr("1 to 2 "));
  EXPECT_EQ(to_json(*result)["doses"].size(), 2U);
  const auto other = run("m", "scale:2");
  EXPECT_THAT(describe(*other), Not(HasSubstr("1 to 2")));
}

// Two images; the scores are the mean of the image, so that an error at it breaks them.
class InjectDetector : public CompareFixture {
 protected:
  InjectResult run(const std::string& error) {
    const auto folder = temporary_.path() / "images";
    std::filesystem::create_directory(folder);
    for (int i = 0; i < 2; ++i)
      std::ofstream(folder / fmt::format("{}.ppm", i), std::ios::binary)
          << "P6 16 8 255\n"
          << std::string(16 * 8 * 3, static_cast<char>(200 + i));
    std::ofstream(temporary_.path() / "a.contract.json") << R"({"schema_version": 1,
      "image": {"name": "images", "dtype": "float32", "shape": [1, 3, 8, 8], "layout": "NCHW",
        "color": "RGB", "resize": "pillow_bilinear", "fit": "stretch", "normalized_by": "pipeline",
        "scale": 0.00392156862745098, "mean": [0, 0, 0], "std": [1, 1, 1], "range": [0, 1]},
      "size": {"name": "orig_target_sizes", "dtype": "int64", "order": "width_height"},
      "outputs": {"kind": "detections", "labels": "labels", "boxes": "boxes", "scores": "scores"},
      "classes": ["circle", "square"]})";
    InjectOptions made;
    made.common.reference = save("a.onnx", R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[1,3,8,8] images, int64[1,2] orig_target_sizes)
        => (int64[1,2] labels, float[1,2,4] boxes, float[1,2] scores)
      <float[1,2,4] corners = {0, 0, 8, 4, 8, 4, 16, 8}, float large = {100000}, float zero = {0},
       float[1,2] base = {0.9, 0.8}, int64[1,2] classes = {0, 1}> {
        mean = ReduceMean <keepdims = 0> (images)
        big = Mul (mean, large)
        nothing = Mul (big, zero)
        scores = Add (base, nothing)
        size = Cast <to = 1> (orig_target_sizes)
        none = ReduceSum <keepdims = 0> (size)
        never = Mul (none, zero)
        boxes = Add (corners, never)
        whole = Cast <to = 7> (never)
        labels = Add (classes, whole)
      })");
    made.common.images = folder;
    made.common.load.intra_op_threads = 1;
    made.at = "big";
    made.error = error;
    made.doses = {0.5, 1, 2};
    auto result = inject(made);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(*result) : InjectResult();
  }
};

// The mean is about 0.79: 79000 is Inf in float16 at every dose, and Inf * 0 is NaN.
TEST_F(InjectDetector, WhatCannotBeJudgedSaysSoOnce) {
  const InjectResult result = run("round:fp16");
  ASSERT_TRUE(result.has_task);
  for (const InjectedDose& dose : result.doses) {
    EXPECT_TRUE(dose.moves_task);
    EXPECT_EQ(dose.unjudged, 2);
    EXPECT_FALSE(dose.top_score.has_value());
  }
  ASSERT_EQ(result.notes.size(), 2U) << describe(result);
  EXPECT_THAT(result.notes[0], HasSubstr("beyond what float16 holds (65504): Inf, at every dose"));
  EXPECT_THAT(result.notes[0], HasSubstr("round:DEVICE"));
  EXPECT_THAT(result.notes[1], HasSubstr("dose 0.5, 1, 2: no detections can be judged in 2 of 2 "
                                         "images"));
  EXPECT_THAT(result.notes[1], HasSubstr("'0.ppm': output 'scores' holds NaN in row 0"));
  const std::string text = describe(result);
  EXPECT_THAT(text, HasSubstr("0.5 to 2 "));
  EXPECT_THAT(text, Not(HasSubstr("1.000")));  // an IoU of nothing
  const Json task = to_json(result)["doses"][0]["task"];
  EXPECT_EQ(task["judged"], 0);
  EXPECT_EQ(task["unjudged"], 2);
  for (const char* figure : {"top_score", "min_iou", "min_scores_cosine", "unmatched_reference"})
    EXPECT_TRUE(task[figure].is_null()) << figure;
}

TEST_F(InjectDetector, WhatCanBeJudgedIsJudged) {
  const InjectResult result = run("round:htp-v73");
  ASSERT_TRUE(result.has_task);
  EXPECT_EQ(result.notes.size(), 0U) << describe(result);
  EXPECT_EQ(result.doses[0].unjudged, 0);
  EXPECT_FALSE(result.doses[0].moves_task);
  EXPECT_EQ(to_json(result)["doses"][0]["task"]["judged"], 2);
  EXPECT_THAT(describe(result), HasSubstr("1.000"));
}

TEST_F(Inject, Errors) {
  EXPECT_THAT(message("m", "noise"), HasSubstr("--error 'noise' is none that is known; possible "
                                               "are gauss:SIGMA"));
  EXPECT_THAT(message("m", "gauss:much"), HasSubstr("'much' is no finite number"));
  EXPECT_THAT(message("m", "gauss:-1"), HasSubstr("a sigma is at least 0"));
  EXPECT_THAT(message("m", "round:int4"), HasSubstr("there is no rounding to 'int4'"));
  EXPECT_THAT(message("m", "round:cpu"), HasSubstr("that device has no arithmetic that rounds"));
  EXPECT_THAT(message("q", "scale:2"), HasSubstr("'q'"));
  EXPECT_THAT(message("k", "scale:2"), HasSubstr("'k' is a constant of the model"));
  EXPECT_THAT(message("y", "scale:2"), HasSubstr("'y' is an output of the model"));
  EXPECT_THAT(message("m", save("w.npz", {{"m", floats({4}, {1, 2, 3, 4})}}).string()),
              HasSubstr("is [4], the tensor is [1,4]"));
}

}  // namespace
}  // namespace tenonnx
