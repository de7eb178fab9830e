// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// The story that the project began with, on the example detector: made fragile (the same in
// float32), it fails whole on the simulated HTP and passes with the cut at the encoder's features;
// unscaled it passes both ways. TENONNX_STORY_IMAGES: how many held-out images (20).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "eval/shapes.h"
#include "flow/deploy.h"
#include "flow/verify.h"
#include "pipeline/image_file.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Story : public ::testing::Test {
 protected:
  // Held-out images and their labels, made once for all tests.
  static void SetUpTestSuite() {
    temporary_ = std::make_unique<TemporaryDirectory>();
    const char* text = std::getenv("TENONNX_STORY_IMAGES");
    const int count = text != nullptr ? std::atoi(text) : 20;
    fs::create_directory(images());
    std::vector<std::uint64_t> seeds;
    for (int i = 0; i < count; ++i) {
      seeds.push_back(kShapesHeldOutSeed + static_cast<std::uint64_t>(i));
      Image image(kShapesSize, kShapesSize, 3);
      image.pixels = make_shapes_image(seeds.back()).rgb;
      ASSERT_TRUE(write_png(images() / shapes_file_name(seeds.back()), image).ok());
    }
    const auto labels = shapes_annotations(seeds);
    ASSERT_TRUE(labels.ok());
    ASSERT_TRUE(write_json_file(images() / "annotations.json", to_json(*labels)).ok());
  }
  static void TearDownTestSuite() { temporary_.reset(); }
  static fs::path images() { return temporary_->path() / "images"; }

  static Result<DeployResult> run(const std::string& model, const std::string& cut,
                                  const std::string& name, const std::string& target = "sim-htp") {
    return deploy(options_for(model, cut, name, target));
  }
  static DeployOptions options_for(const std::string& model, const std::string& cut,
                                   const std::string& name, const std::string& target = "sim-htp") {
    DeployOptions options;
    options.model = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models" / model;
    options.target = target;
    options.out = temporary_->path() / name;
    options.images = images();
    options.cut = cut;
    options.load.intra_op_threads = 2;
    return options;
  }

  static std::string checks_of(const DeployResult& result) { return "\n" + describe(result); }

  static const Check* find(const DeployResult& result, std::string_view name) {
    for (const Check& check : result.proof.checks)
      if (check.name == name) return &check;
    return nullptr;
  }

  static std::unique_ptr<TemporaryDirectory> temporary_;
};
std::unique_ptr<TemporaryDirectory> Story::temporary_;

TEST_F(Story, UnscaledPassesWithTheCut) {
  const auto result = run("shapes_deimv2.onnx", "", "cut");
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->manifest.verdict, "PASS") << checks_of(*result);
  EXPECT_EQ(result->cut_origin, "cut by the contract");
  ASSERT_EQ(result->manifest.segments.size(), 2u);
  EXPECT_EQ(result->manifest.segments[0].executor, "sim:htp-v73");
  EXPECT_EQ(result->manifest.segments[1].executor, "cpu");
  ASSERT_EQ(result->boundaries.size(), 3u);
  EXPECT_EQ(result->boundaries[0].info.shape, (Shape{1, 64, 20, 20}));
  // The graph level: identical, not merely close.
  const Check* cut = find(*result, "cut: differing elements");
  ASSERT_NE(cut, nullptr) << checks_of(*result);
  EXPECT_EQ(cut->value, 0);
  // The encoder did run in another arithmetic: its features differ from the cpu's.
  for (const TensorFigures& figures : result->proof.figures) {
    if (figures.boundary) {
      EXPECT_GT(figures.error.max_abs, 0) << figures.name;
    }
  }
  // mAP 0.840 whole on 200 images; 20 images scatter (a standard error of some 0.03).
  ASSERT_TRUE(result->proof.precision.has_value());
  EXPECT_NEAR(result->proof.precision->reference.ap, 0.84, 0.09);
  EXPECT_NEAR(result->proof.precision->candidate.ap, result->proof.precision->reference.ap, 0.02);
  EXPECT_TRUE(result->proof.first_bad_tensor.empty());
}

TEST_F(Story, UnscaledPassesWhole) {
  const auto result = run("shapes_deimv2.onnx", "none", "whole");
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->manifest.verdict, "PASS") << checks_of(*result);
  ASSERT_EQ(result->manifest.segments.size(), 1u);
  EXPECT_EQ(result->manifest.segments[0].executor, "sim:htp-v73");
}

TEST_F(Story, FragileFailsWholeAndTheFirstTensorIsNamed) {
  const auto result = run("shapes_deimv2_fragile.onnx", "none", "fragile_whole");
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->manifest.verdict, "FAIL") << checks_of(*result);
  // The graph level holds: it is the device's arithmetic that fails.
  EXPECT_TRUE(result->proof.cut_is_right);
  // In float64 the first value beyond the range is decoder layer 0's product before the
  // down-projection.
  EXPECT_THAT(result->proof.first_bad_tensor, HasSubstr("decoder/layers.0")) << checks_of(*result);
  EXPECT_THAT(result->proof.diagnosis, HasSubstr(result->proof.first_bad_tensor));
  // A package is written all the same, and says that it failed.
  const auto package = read_package(result->package);
  ASSERT_TRUE(package.ok()) << package.status().message();
  EXPECT_EQ(package->verdict, "FAIL");
}

// The command: what a script sees of the same.
TEST_F(Story, TheCommandSaysSoByItsExitCode) {
  const auto exit_code = [](const std::string& arguments) {
    const std::string line =
        std::string("'") + TENONNX_TEST_BINARY_DIR "/bin/tenonnx' -q " + arguments + " >/dev/null";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  const std::string model =
      "'" TENONNX_TEST_SOURCE_DIR "/examples/models/shapes_deimv2_fragile.onnx'";
  const std::string common = "deploy " + model + " --target sim-htp --max-images 3 --images '" +
                             images().string() + "' -o '" + temporary_->path().string();
  EXPECT_EQ(exit_code(common + "/by_command' --cut none"), 1);
  EXPECT_EQ(exit_code("verify '" + temporary_->path().string() + "/by_command'"), 1);
  EXPECT_EQ(exit_code(common + "/by_command'"), 2);  // it stands there already
  EXPECT_EQ(exit_code(common + "/by_command' --force"), 0);
  EXPECT_EQ(exit_code("verify '" + temporary_->path().string() + "/by_command'"), 0);
}

TEST_F(Story, FragilePassesWithTheCut) {
  const auto result = run("shapes_deimv2_fragile.onnx", "", "fragile_cut");
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->manifest.verdict, "PASS") << checks_of(*result);
}

// Not the whole decoder: the four products before its down-projections are enough. As many nodes
// beside them, the up-projections, mend nothing.
TEST_F(Story, FragilePassesWithFourNodesOnTheCpu) {
  for (const std::string node : {"down_proj", "up_proj"}) {
    DeployOptions options = options_for("shapes_deimv2_fragile.onnx", "", node);
    options.keep_on_cpu = temporary_->path() / (node + ".txt");
    std::ofstream list(options.keep_on_cpu);
    for (int layer = 0; layer < 4; ++layer)
      list << "/model/model/decoder/layers." << layer << "/mlp/" << node << "/MatMul\n";
    list.close();
    const auto result = deploy(options);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->manifest.verdict, node == "down_proj" ? "PASS" : "FAIL")
        << checks_of(*result);
    EXPECT_EQ(result->manifest.segments.size(), 9u);
    EXPECT_TRUE(result->proof.cut_is_right);
  }
}

TEST_F(Story, OnTheCpuTheGatesAreTighterAndPass) {
  const auto result = run("shapes_deimv2.onnx", "", "cpu", "cpu");
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->manifest.verdict, "PASS") << checks_of(*result);
  const Check* scores = find(*result, "scores cosine, least of the images");
  ASSERT_NE(scores, nullptr) << checks_of(*result);
  EXPECT_EQ(scores->limit.value, 0.999);
}

TEST_F(Story, VerifyProvesItAgain) {
  ASSERT_TRUE(run("shapes_deimv2.onnx", "", "verified").ok());
  VerifyOptions options;
  options.package = temporary_->path() / "verified";
  auto result = verify(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kPass);
  EXPECT_FALSE(result->ran_gates);
  options.images = images();  // against the evidence
  result = verify(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kPass) << describe(*result);
  EXPECT_TRUE(result->ran_gates);
  options.model = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2.onnx";
  result = verify(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->verdict, Verdict::kPass) << describe(*result);
  EXPECT_TRUE(result->proof.cut_is_right);

  // Sources that are exchanged, and one that does not exist, in both places that name them.
  const fs::path manifest = options.package / "manifest.json";
  const Json original = *read_json_file(manifest);
  ASSERT_EQ(original["boundaries"].size(), 3u) << original["settings"]["cut"];
  const auto with_sources = [&](std::size_t at, std::size_t as, const std::string& other) {
    Json json = original;
    for (const auto& [where, what] : {std::pair(at, as), std::pair(as, at)}) {
      const Json source = other.empty() ? original["boundaries"][what]["source"] : Json(other);
      json["boundaries"][where]["source"] = json["contract"]["cut"][where] = source;
    }
    EXPECT_TRUE(write_json_file(manifest, json).ok());
    const auto verified = verify(options);
    EXPECT_TRUE(verified.ok()) << verified.status().message();
    return verified.ok() ? describe(*verified) : "";
  };
  EXPECT_THAT(with_sources(1, 2, ""),
              AllOf(HasSubstr("verified: FAIL"), HasSubstr("'feature_1' is not '/model/"),
                    HasSubstr("'feature_2' is not '/model/")));
  EXPECT_THAT(
      with_sources(2, 2, "/no/such/tensor"),
      AllOf(HasSubstr("verified: INCONCLUSIVE"), HasSubstr("which the source model has not")));
  // By the package's contract both sides would be prepared alike: it must be the model's own.
  Json json = original;
  json["contract"]["image"]["color"] = "BGR";
  json["contract"]["classes"] = {"rectangle", "circle", "triangle", "cross"};
  ASSERT_TRUE(write_json_file(manifest, json).ok());
  EXPECT_THAT(verify(options).status().message(),
              AllOf(HasSubstr("the package's contract is not that of"), HasSubstr("/image/color"),
                    HasSubstr("/classes/0")));
  // A segment whose file has another shape than the manifest says.
  json = original;
  for (Json* tensor : {&json["segments"][0]["outputs"][0], &json["segments"][1]["inputs"][0]})
    (*tensor)["shape"] = {1, 20, 64, 20};
  ASSERT_TRUE(write_json_file(manifest, json).ok());
  EXPECT_THAT(verify(options).status().message(),
              HasSubstr("'feature_0' of its outputs is float32 [1,64,20,20], in the manifest "
                        "float32 [1,20,64,20]"));
  // A figure that moved is told, though it still passes.
  json = original;
  for (Json& check : json["checks"])
    if (check["name"] == "IoU of matched boxes, least") check["value"] = 0.96;
  ASSERT_TRUE(write_json_file(manifest, json).ok());
  EXPECT_THAT(describe(*verify(options)), HasSubstr("at the deploy it was 0.96"));
  ASSERT_TRUE(write_json_file(manifest, original).ok());

  options.model = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples/models/shapes_deimv2_fragile.onnx";
  result = verify(options);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), HasSubstr("another model"));
}

}  // namespace
}  // namespace tenonnx
