// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// A package of two segments whose outputs can be worked out by hand, for tests of this module.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "base/temporary_directory.h"
#include "metrics/limit.h"
#include "model/parse_for_test.h"
#include "package/manifest.h"
#include "pipeline/image.h"
#include "tenonnx/pipeline.h"

namespace tenonnx {

// encoder: feature_0 = the mean of each channel of the image, in 0..1: (r, g, b).
// decoder: one box (0.25, 0.5, 0.75, 1) times the size (w, h), label 1, score r; a second one (0,
// 0, 1, 1) times the size, label 0, score g.
inline constexpr const char* kEncoderText = R"(<ir_version: 8, opset_import: ["" : 17]>
  encoder (float[1,3,8,8] images) => (float[1,3,1,1] feature_0) {
    feature_0 = GlobalAveragePool (images)
  })";
inline constexpr const char* kDecoderText = R"(<ir_version: 8, opset_import: ["" : 17]>
  decoder (float[1,3,1,1] feature_0, int64[1,2] orig_target_sizes)
      => (int64[1,2] labels, float[1,2,4] boxes, float[1,2] scores)
      <float[1,2,4] corners = {0.25, 0.5, 0.75, 1.0, 0.0, 0.0, 1.0, 1.0},
       int64[1,2] both = {1, 0}, int64[1] two = {2}, int64[2] pair = {1, 2}, int64[2] red = {0, 1},
       int64[2] tile = {1, 2}> {
    size = Cast <to = 1> (orig_target_sizes)
    four = Tile (size, tile)
    axis = Constant <value = int64[1] {1}> ()
    row = Unsqueeze (four, axis)
    boxes = Mul (corners, row)
    labels = Identity (both)
    rgb = Flatten <axis = 1> (feature_0)
    scores = Gather <axis = 1> (rgb, red)
  })";

inline Contract test_contract() {
  Contract contract;
  contract.image.shape = {1, 3, 8, 8};
  contract.size = SizeInput{};
  contract.classes = {"circle", "cross"};
  return contract;
}

inline Manifest test_manifest() {
  Manifest m;
  m.target = "cpu";
  m.verdict = "PASS";
  m.contract = test_contract();
  const TensorInfo images{"images", DType::kFloat32, {1, 3, 8, 8}};
  const TensorInfo feature{"feature_0", DType::kFloat32, {1, 3, 1, 1}};
  const TensorInfo size{"orig_target_sizes", DType::kInt64, {1, 2}};
  m.segments = {{"encoder", "encoder.onnx", "cpu", {images}, {feature}},
                {"decoder",
                 "decoder.onnx",
                 "cpu",
                 {feature, size},
                 {{"labels", DType::kInt64, {1, 2}},
                  {"boxes", DType::kFloat32, {1, 2, 4}},
                  {"scores", DType::kFloat32, {1, 2}}}}};
  m.boundaries = {{"feature_0", "/encoder/pool"}};
  m.source_model = "test.onnx";
  m.source_sha256 = sha256_hex("the model");
  m.inputs_sha256 = sha256_hex("the inputs");
  m.versions = {{"tenonnx", std::string(version())}, {"onnxruntime", "1.29.0"}};
  m.settings = {{"optimization", "all"}};
  m.stages = {
      {"export", "ok", ""}, {"build", "ok", ""}, {"runtime_init", "ok", ""}, {"forward", "ok", ""}};
  m.checks = Json::array({to_json(make_check("scores cosine", 0.9999, Comparison::kAtLeast,
                                             {0.99, "gate of a heterogeneous chain"}))});
  return m;
}

// Writes the package to `directory`, which must not exist or be empty.
inline void write_test_package(const std::filesystem::path& directory,
                               Manifest manifest = test_manifest(),
                               const std::string& encoder = kEncoderText,
                               const std::string& decoder = kDecoderText) {
  std::filesystem::create_directories(directory);
  ASSERT_TRUE(parse_model(encoder).save(directory / "encoder.onnx").ok());
  ASSERT_TRUE(parse_model(decoder).save(directory / "decoder.onnx").ok());
  const Status written = write_package(directory, manifest);
  ASSERT_TRUE(written.ok()) << written.message();
}

inline Image coloured(int width, int height, int r, int g, int b) {
  Image image(width, height, 3);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    image.pixels[i] = static_cast<std::uint8_t>(r);
    image.pixels[i + 1] = static_cast<std::uint8_t>(g);
    image.pixels[i + 2] = static_cast<std::uint8_t>(b);
  }
  return image;
}

// A folder of its own, with the package at pkg/ once a test has written it.
class PipelineTest : public ::testing::Test {
 protected:
  std::filesystem::path folder() const { return temporary_.path(); }
  std::filesystem::path package() const { return folder() / "pkg"; }
  PipelineConfig config() const {
    PipelineConfig config;
    config.package = package().string();
    return config;
  }
  // The error of init() on what write_test_package wrote.
  std::string init_error() const {
    Pipeline pipeline(config());
    return pipeline.init().message();
  }

 private:
  TemporaryDirectory temporary_;
};

}  // namespace tenonnx
