// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "tenonnx/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "pipeline/image.h"
#include "pipeline/test_package.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(PipelineTest, DetectsWhatTheModelSays) {
  write_test_package(package());
  Pipeline pipeline(config());
  const Status status = pipeline.init();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(pipeline.contract().classes[0], "circle");
  EXPECT_EQ(pipeline.verdict(), "PASS");
  const Image image = coloured(40, 20, 255, 102, 0);
  std::vector<Detection> found;
  ASSERT_TRUE(pipeline.run(view_of(image), found).ok());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].label, 1);
  // A mean of 64 equal float32 numbers: exact for 1, one rounding for 0.4.
  EXPECT_EQ(found[0].score, 1.0F);
  EXPECT_EQ(found[0].box, (Box{10, 10, 30, 20}));
  EXPECT_EQ(found[1].label, 0);
  EXPECT_NEAR(found[1].score, 0.4F, 1e-6);
  EXPECT_EQ(found[1].box, (Box{0, 0, 40, 20}));
}

TEST_F(PipelineTest, TheConstructorIsLightAndInitReports) {
  Pipeline pipeline(config());  // nothing there
  EXPECT_THAT(pipeline.init().message(), HasSubstr("there is no package"));
  const Image image = coloured(4, 4, 0, 0, 0);
  std::vector<Detection> found;
  EXPECT_EQ(pipeline.run(view_of(image), found).code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(pipeline.run(view_of(image), found).message(), HasSubstr("call init() first"));
  Pipeline::Tensors a, b;
  EXPECT_EQ(pipeline.infer(a, b).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(pipeline.post_process(a, found).code(), StatusCode::kFailedPrecondition);
}

TEST_F(PipelineTest, AContractThatIsNotTheFilesIsRefused) {
  Manifest manifest = test_manifest();
  manifest.contract.image.shape = {1, 3, 16, 16};
  write_test_package(package(), manifest);
  EXPECT_THAT(init_error(),
              AllOf(HasSubstr("manifest.json: contract"),
                    HasSubstr("'images' is [1,3,16,16] (NCHW)"), HasSubstr("takes [1,3,8,8]")));
}

TEST_F(PipelineTest, UnsupportedImagesAreRefused) {
  write_test_package(package());
  Pipeline pipeline(config());
  ASSERT_TRUE(pipeline.init().ok());
  const Image image = coloured(4, 4, 0, 0, 0);
  ImageView view = view_of(image);
  view.format = ImageFormat::kUnknown;
  Pipeline::Tensors inputs;
  EXPECT_EQ(pipeline.pre_process(view, inputs).code(), StatusCode::kUnsupported);
  EXPECT_EQ(pipeline.pre_process({}, inputs).code(), StatusCode::kInvalidArgument);
  view = view_of(image);
  view.stride = 7;
  EXPECT_EQ(pipeline.pre_process(view, inputs).code(), StatusCode::kInvalidArgument);
}

TEST_F(PipelineTest, InferRefusesInputsThatAreNotTheModels) {
  write_test_package(package());
  Pipeline pipeline(config());
  ASSERT_TRUE(pipeline.init().ok());
  const Image image = coloured(4, 4, 0, 0, 0);
  Pipeline::Tensors inputs, outputs;
  ASSERT_TRUE(pipeline.pre_process(view_of(image), inputs).ok());
  const auto error = [&](std::size_t i, Tensor tensor) {
    Pipeline::Tensors changed = inputs;
    changed.values[i] = std::move(tensor);
    return pipeline.infer(changed, outputs).message();
  };
  EXPECT_THAT(error(0, Tensor(DType::kUInt8, {1, 3, 8, 8})), HasSubstr("'images' is uint8"));
  EXPECT_THAT(error(0, Tensor(DType::kFloat32, {1, 3, 8, 9})), HasSubstr("[1,3,8,9]"));
  EXPECT_THAT(error(0, Tensor(DType::kFloat32, {1, 8, 8, 3})), HasSubstr("transpose it"));
  EXPECT_THAT(error(1, Tensor(DType::kInt64, {1, 2})), HasSubstr("[0, 0]"));
  EXPECT_THAT(error(1, Tensor(DType::kInt32, {1, 2})), HasSubstr("int32, the model takes int64"));
  Pipeline::Tensors none;
  EXPECT_THAT(pipeline.infer(none, outputs).message(), HasSubstr("got 0 tensors"));
  EXPECT_THAT(pipeline.infer(inputs, inputs).message(), HasSubstr("one object"));
}

TEST_F(PipelineTest, TensorsAreReused) {
  write_test_package(package());
  Pipeline pipeline(config());
  ASSERT_TRUE(pipeline.init().ok());
  Pipeline::Tensors inputs, outputs;
  const Image red = coloured(4, 4, 255, 0, 0), green = coloured(4, 4, 0, 255, 0);
  ASSERT_TRUE(pipeline.pre_process(view_of(red), inputs).ok());
  ASSERT_TRUE(pipeline.infer(inputs, outputs).ok());
  std::vector<const void*> before;
  for (const Tensor& tensor : outputs.values) before.push_back(tensor.raw());
  ASSERT_TRUE(pipeline.pre_process(view_of(green), inputs).ok());
  ASSERT_TRUE(pipeline.infer(inputs, outputs).ok());
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(outputs.values[i].raw(), before[i]);
  std::vector<Detection> found;
  ASSERT_TRUE(pipeline.post_process(outputs, found).ok());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].label, 0);
}

TEST_F(PipelineTest, FourThreadsShareOneModel) {
  write_test_package(package());
  PipelineConfig settings = config();
  settings.scheduling.intra_op_threads = 1;
  Pipeline pipeline(settings);
  ASSERT_TRUE(pipeline.init().ok());
  constexpr int kImages = 16, kThreads = 4, kRounds = 5;
  std::vector<Image> images;
  std::vector<std::vector<Detection>> expected(kImages);
  for (int i = 0; i < kImages; ++i) {
    images.push_back(coloured(10 + i, 30 - i, 255 - i * 7, 90 + i * 5, i));
    ASSERT_TRUE(pipeline.run(view_of(images.back()), expected[static_cast<std::size_t>(i)]).ok());
  }
  std::vector<int> wrong(kThreads, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Pipeline::Tensors inputs, outputs;
      std::vector<Detection> found;
      for (int round = 0; round < kRounds; ++round)
        for (int k = 0; k < kImages; ++k) {
          const auto i = static_cast<std::size_t>((k * 5 + t * 3) % kImages);
          const bool ok = pipeline.pre_process(view_of(images[i]), inputs).ok() &&
                          pipeline.infer(inputs, outputs).ok() &&
                          pipeline.post_process(outputs, found).ok();
          if (!ok || found != expected[i]) ++wrong[static_cast<std::size_t>(t)];
        }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));
}

TEST_F(PipelineTest, AFailedPackageRunsOnlyWhereThatIsAllowed) {
  Manifest manifest = test_manifest();
  manifest.verdict = "FAIL";
  manifest.checks = Json::array({to_json(make_check("scores cosine", 0.5, Comparison::kAtLeast,
                                                    {0.99, "gate of a heterogeneous chain"}))});
  write_test_package(package(), manifest);
  Pipeline refused(config());
  const Status status = refused.init();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("FAILED"), HasSubstr("scores cosine")));
  PipelineConfig allowed = config();
  allowed.allow_failed_package = true;
  Pipeline pipeline(allowed);
  EXPECT_TRUE(pipeline.init().ok());
  EXPECT_EQ(pipeline.verdict(), "FAIL");
}

TEST_F(PipelineTest, ARuntimeOlderThanTheEvidenceIsRefused) {
  Manifest manifest = test_manifest();
  manifest.versions[1].second = "99.1.0";
  write_test_package(package(), manifest);
  EXPECT_THAT(init_error(), AllOf(HasSubstr("onnxruntime is 1."), HasSubstr("99.1.0")));
  PipelineConfig unchecked = config();
  unchecked.check_versions = false;
  Pipeline pipeline(unchecked);
  EXPECT_TRUE(pipeline.init().ok());
}

TEST_F(PipelineTest, AChangedByteIsRefused) {
  write_test_package(package());
  std::fstream file(package() / "decoder.onnx", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(20);
  file.put('\x7F');
  file.close();
  EXPECT_THAT(init_error(), HasSubstr("decoder.onnx"));
}

TEST_F(PipelineTest, ASegmentThatIsNotWhatTheManifestSays) {
  Manifest manifest = test_manifest();
  for (Segment& segment : manifest.segments)
    for (auto* side : {&segment.inputs, &segment.outputs})
      for (TensorInfo& info : *side)
        if (info.name == "feature_0") info.shape = {1, 3, 2, 2};
  write_test_package(package(), manifest);
  EXPECT_THAT(init_error(),
              AllOf(HasSubstr("'encoder'"), HasSubstr("'feature_0'"), HasSubstr("[1,3,2,2]")));
}

TEST_F(PipelineTest, AnExecutorThatDoesNotExistNamesItsSegment) {
  Manifest manifest = test_manifest();
  manifest.segments[0].executor = "abacus";
  write_test_package(package(), manifest);
  EXPECT_THAT(init_error(), AllOf(HasSubstr("segment 'encoder'"), HasSubstr("abacus")));
}

TEST_F(PipelineTest, NaNFromTheModelIsAnError) {
  std::string decoder = kDecoderText;
  const std::string one = "scores = Gather";
  decoder.replace(decoder.find(one), one.size(), "picked = Gather");
  decoder.replace(decoder.rfind('}'), 1,
                  "  zero = Sub (picked, picked)\n scores = Div (zero, zero)\n}");
  write_test_package(package(), test_manifest(), kEncoderText, decoder);
  Pipeline pipeline(config());
  ASSERT_TRUE(pipeline.init().ok());
  const Image image = coloured(4, 4, 9, 9, 9);
  std::vector<Detection> found;
  EXPECT_THAT(pipeline.run(view_of(image), found).message(), HasSubstr("'scores' holds NaN"));
}

}  // namespace
}  // namespace tenonnx
