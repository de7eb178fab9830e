// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "bench/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "metrics/limit.h"
#include "ort/test_models.h"
#include "package/manifest.h"
#include "pipeline/image_file.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kEncoder = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[1,3,8,8] images) => (float[1,3,8,8] feature_0) { feature_0 = Relu (images) })";
// Three detections over the whole image, scored by the brightest pixel of each channel.
constexpr const char* kDecoder = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[1,3,8,8] feature_0, int64[1,2] orig_target_sizes)
    => (int64[1,3] labels, float[1,3,4] boxes, float[1,3] scores)
  <float[1,3,1] zeros = {0, 0, 0}, int64[1] axis = {1}> {
    scores = ReduceMax <axes = [2, 3], keepdims = 0> (feature_0)
    labels = Cast <to = 7> (scores)
    size = Cast <to = 1> (orig_target_sizes)
    wide = Unsqueeze (size, axis)
    corner = Add (wide, zeros)
    zero = Mul (corner, zeros)
    boxes = Concat <axis = 2> (zero, corner)
  })";

class BenchPackageTest : public testing::Test {
 protected:
  void SetUp() override { write("PASS"); }

  void write(const std::string& verdict) {
    fs::remove_all(package());
    fs::create_directories(package());
    ASSERT_TRUE(model_from_text(kEncoder).save(package() / "encoder.onnx").ok());
    ASSERT_TRUE(model_from_text(kDecoder).save(package() / "decoder.onnx").ok());
    const TensorInfo feature{"feature_0", DType::kFloat32, {1, 3, 8, 8}};
    Manifest manifest;
    manifest.target = "cpu";
    manifest.verdict = verdict;
    manifest.contract.image.shape = {1, 3, 8, 8};
    manifest.contract.size = SizeInput{};
    manifest.contract.classes = {"dark", "bright"};
    manifest.segments = {
        {"encoder", "encoder.onnx", "cpu", {{"images", DType::kFloat32, {1, 3, 8, 8}}}, {feature}},
        {"decoder",
         "decoder.onnx",
         "cpu",
         {feature, {"orig_target_sizes", DType::kInt64, {1, 2}}},
         {{"labels", DType::kInt64, {1, 3}},
          {"boxes", DType::kFloat32, {1, 3, 4}},
          {"scores", DType::kFloat32, {1, 3}}}}};
    manifest.boundaries = {{"feature_0", "relu_output"}};
    manifest.source_model = "source.onnx";
    manifest.source_sha256 = sha256_hex("source");
    manifest.inputs_sha256 = sha256_hex("inputs");
    manifest.stages = {{"export", "ok", ""},
                       {"build", "ok", ""},
                       {"runtime_init", "ok", ""},
                       {"forward", "ok", ""}};
    manifest.checks = Json::array({to_json(make_check("scores cosine", 0.9999, Comparison::kAtLeast,
                                                      {0.99, "gate of a heterogeneous chain"}))});
    const Status status = write_package(package(), manifest);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  static BenchOptions quick() {
    BenchOptions options;
    options.warm_up = 1;
    options.runs = 5;
    options.scheduling.intra_op_threads = 1;
    return options;
  }

  fs::path package() const { return directory_.path() / "package"; }
  TemporaryDirectory directory_;
};

TEST_F(BenchPackageTest, TimesSegmentsBoundariesAndEndToEnd) {
  const auto result = bench_package(package(), quick());
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->segments.size(), 2u);
  EXPECT_EQ(result->segments[0].name, "encoder");
  EXPECT_EQ(result->segments[1].executor, "cpu");
  EXPECT_THAT(result->segments[1].description, HasSubstr("1 intra-op threads"));
  EXPECT_THAT(result->segments[1].description, HasSubstr("spinning off"));
  ASSERT_EQ(result->boundaries.size(), 1u);
  EXPECT_EQ(result->boundaries[0].bytes, 3 * 8 * 8 * 4u);
  EXPECT_THAT(result->boundaries[0].tensors, ElementsAre("feature_0"));
  ASSERT_EQ(result->stages.size(), 3u);
  EXPECT_EQ(result->stages[1].name, "infer");
  for (const LatencySummary* summary :
       {&result->forward, &result->segments[0].latency, &result->end_to_end,
        &result->stages[0].latency, &result->boundaries[0].copy}) {
    EXPECT_EQ(summary->runs, 5u);
    EXPECT_GE(summary->p50.estimate, summary->min);
    EXPECT_GE(summary->p95.estimate, summary->p50.estimate);
    EXPECT_FALSE(summary->p99);
  }
  // A part takes no longer than the whole in the same run, so neither do the minima.
  EXPECT_LE(result->segments[0].latency.min, result->forward.p95.high);
  EXPECT_LE(result->stages[1].latency.min, result->end_to_end.p95.high);
  EXPECT_GT(result->forward.min, 0);
  EXPECT_GT(result->package_check_ms, 0);
  EXPECT_GT(result->segments[0].session_ms, 0);
  EXPECT_GT(result->pipeline_init_ms, 0);
  EXPECT_EQ(result->image, "640x480 synthetic");
  EXPECT_TRUE(result->image_file_reading.empty());
}

TEST_F(BenchPackageTest, JsonCarriesWhatAFigureNeeds) {
  const auto result = bench_package(package(), quick());
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Json json = to_json(*result);
  EXPECT_EQ(json["schema_version"], kBenchSchemaVersion);
  EXPECT_EQ(json["unit"], "ms");
  EXPECT_EQ(json["settings"]["runs"], 5);
  EXPECT_EQ(json["settings"]["spinning"], false);
  EXPECT_EQ(json["settings"]["interval_level"], 0.95);
  for (const char* key : {"tenonnx", "onnxruntime", "cpu", "governor", "logical cores"})
    EXPECT_TRUE(json["machine"].contains(key)) << key;
  EXPECT_THAT(json["forward"]["scope"].get<std::string>(), HasSubstr("no preprocessing"));
  EXPECT_THAT(json["end_to_end"]["scope"].get<std::string>(), HasSubstr("not inside"));
  EXPECT_EQ(json["forward"]["segments"].size(), 2u);
  EXPECT_THAT(json["notes"][0].get<std::string>(), HasSubstr("need not add up"));
}

TEST_F(BenchPackageTest, TextIsATable) {
  const auto result = bench_package(package(), quick());
  ASSERT_TRUE(result.ok()) << result.status().message();
  const std::string text = to_text(*result);
  for (const char* part :
       {"verdict PASS", "5 runs after a first run and 1 warm-up run", "P50 [95 %]",
        "encoder on cpu", "end to end", "post_process", "start-up: package check",
        "768 bytes in 1 tensor (feature_0)", "need not add up"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(text, testing::Not(HasSubstr(" \n")));
}

TEST_F(BenchPackageTest, ImageFile) {
  Image image(31, 17, 3);
  const auto png = encode_png(image);
  ASSERT_TRUE(png.ok());
  const fs::path file = directory_.path() / "small.png";
  ASSERT_TRUE(write_file_atomic(file, *png).ok());
  BenchOptions options = quick();
  options.image = file;
  const auto result = bench_package(package(), options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->image, "31x17 small.png");
  ASSERT_EQ(result->image_file_reading.size(), 1u);
  EXPECT_GT(result->image_file_reading[0].latency.min, 0);
  options.image = directory_.path() / "missing.png";
  EXPECT_THAT(bench_package(package(), options).status().message(), HasSubstr("missing.png"));
}

TEST_F(BenchPackageTest, FailedPackageIsNotTimedUnlessAskedFor) {
  write("FAIL");
  BenchOptions options = quick();
  const auto refused = bench_package(package(), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("verdict is FAIL"));
  options.allow_failed_package = true;
  const auto timed = bench_package(package(), options);
  ASSERT_TRUE(timed.ok()) << timed.status().message();
  EXPECT_EQ(timed->verdict, "FAIL");
}

TEST_F(BenchPackageTest, ChangedPackageAndNoPackage) {
  std::ofstream(package() / "decoder.onnx", std::ios::app) << "x";
  EXPECT_THAT(bench_package(package(), quick()).status().message(), HasSubstr("decoder.onnx"));
  EXPECT_EQ(bench_package(directory_.path() / "nowhere", quick()).status().code(),
            StatusCode::kNotFound);
}

}  // namespace
}  // namespace tenonnx
