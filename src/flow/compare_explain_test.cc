// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Mistakes in feeding a model, named by a whole comparison.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "flow/compare.h"
#include "model/parse_for_test.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Three detections whose scores are the means of the channels (red, green, blue), after `first` was
// done to the image and `size` to its size.
std::string detector(const std::string& first, const std::string& size = "Identity ({})") {
  return fmt::format(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,3,8,8] images, int64[1,2] orig_target_sizes)
      => (int64[1,3] labels, float[1,3,4] boxes, float[1,3] scores)
    <float[1,3,4] corners = {{0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1, 0, 0.5, 0.5, 1}},
     int64[1,3] classes = {{0, 1, 2}}, int64[3] row = {{1, 1, 4}}, int64[3] bgr = {{2, 1, 0}}, int64[2] turned = {{1, 0}},
     float none = {{0}}> {{
      {}
      scores = ReduceMean <axes = [2, 3], keepdims = 0> (image)
      nothing = Mul (scores, none)
      zero = Cast <to = 7> (nothing)
      labels = Add (classes, zero)
      given = {}
      size = Cast <to = 1> (given)
      twice = Concat <axis = 1> (size, size)
      pixels = Reshape (twice, row)
      boxes = Mul (corners, pixels)
    }})",
                     first, fmt::format(fmt::runtime(size), "orig_target_sizes"));
}

class CompareExplain : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(temporary_.path() / "images");
    std::string pixels;
    for (int i = 0; i < 16 * 8; ++i) pixels += std::string("\xE0\x90\x60", 3);  // 0.88, 0.56, 0.38
    std::ofstream(temporary_.path() / "images" / "a.ppm", std::ios::binary) << "P6 16 8 255\n"
                                                                            << pixels;
    const Json contract = Json::parse(R"({"schema_version": 1,
      "image": {"name": "images", "dtype": "float32", "shape": [1, 3, 8, 8], "layout": "NCHW",
        "color": "RGB", "resize": "pillow_bilinear", "fit": "stretch",
        "normalized_by": "pipeline", "scale": 0.00392156862745098, "mean": [0, 0, 0],
        "std": [1, 1, 1], "range": [0, 1]},
      "size": {"name": "orig_target_sizes", "dtype": "int64", "order": "width_height"},
      "outputs": {"kind": "detections", "labels": "labels", "boxes": "boxes", "scores": "scores"},
      "classes": ["red", "green", "blue"]})");
    ASSERT_TRUE(write_json_file(temporary_.path() / "a.contract.json", contract).ok());
  }
  CompareResult run(const std::string& first, const std::string& size = "Identity ({})") const {
    CompareOptions o;
    o.reference = temporary_.path() / "a.onnx";
    o.candidate = temporary_.path() / "b.onnx";
    EXPECT_TRUE(parse_model(detector("image = Identity (images)").c_str()).save(o.reference).ok());
    EXPECT_TRUE(parse_model(detector(first, size).c_str()).save(o.candidate).ok());
    o.images = temporary_.path() / "images";
    o.tensors = "[lbs]*[s]";  // the outputs
    o.cache = "none";
    o.load.intra_op_threads = 1;
    auto result = compare(o);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? std::move(*result) : CompareResult();
  }
  TemporaryDirectory temporary_;
};

TEST_F(CompareExplain, ACandidateThatSwapsTheColoursIsNamed) {
  const CompareResult result = run("image = Gather <axis = 1> (images, bgr)");
  EXPECT_EQ(result.verdict, Verdict::kFail);
  EXPECT_THAT(result.explanations, Contains(HasSubstr("BGR"))) << describe(result);
  EXPECT_THAT(describe(result), HasSubstr("cause: "));
  EXPECT_EQ(to_json(result)["explanations"].size(), result.explanations.size());
}

TEST_F(CompareExplain, ACandidateThatReadsHeightBeforeWidthIsNamed) {
  // The mistake is the candidate's own: its boxes are those of an image of 8 x 16.
  const CompareResult result = run("image = Identity (images)", "Gather <axis = 1> ({}, turned)");
  EXPECT_EQ(result.verdict, Verdict::kFail);
  EXPECT_THAT(result.explanations, Contains(HasSubstr("[height, width]"))) << describe(result);
}

TEST_F(CompareExplain, WhatNoMistakeExplainsIsNotExplained) {
  const CompareResult wrong = run("image = Mul (images, images)");
  EXPECT_EQ(wrong.verdict, Verdict::kFail);
  EXPECT_THAT(wrong.explanations, IsEmpty()) << describe(wrong);
  const CompareResult right = run("image = Identity (images)");
  EXPECT_EQ(right.verdict, Verdict::kPass);
  EXPECT_THAT(right.explanations, IsEmpty());
}

}  // namespace
}  // namespace tenonnx
