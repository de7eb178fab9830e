// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "tenonnx/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "base/temporary_directory.h"
#include "contract/contract.h"
#include "eval/shapes.h"
#include "metrics/detections.h"
#include "pipeline/dataset.h"
#include "pipeline/image.h"
#include "pipeline/image_file.h"
#include "pipeline/run_images.h"
#include "pipeline/test_package.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Image coloured(int width, int height, int r, int g, int b) {
  Image image(width, height, 3);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    image.pixels[i] = static_cast<std::uint8_t>(r);
    image.pixels[i + 1] = static_cast<std::uint8_t>(g);
    image.pixels[i + 2] = static_cast<std::uint8_t>(b);
  }
  return image;
}

class PipelineTest : public ::testing::Test {
 protected:
  fs::path folder() const { return temporary_.path(); }
  fs::path package() const { return folder() / "pkg"; }
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
  manifest.checks = Json::array({{{"name", "scores cosine"}, {"verdict", "FAIL"}}});
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

// --- run_images ------------------------------------------------------------------------------

class RunImagesTest : public PipelineTest {
 protected:
  void SetUp() override {
    write_test_package(package());
    fs::create_directories(images());
    ASSERT_TRUE(write_png(images() / "b.png", coloured(40, 20, 255, 0, 0)).ok());
    ASSERT_TRUE(write_png(images() / "a.png", coloured(20, 20, 0, 255, 0)).ok());
    std::ofstream(images() / "notes.txt") << "not an image";
    options_.package = package();
    options_.images = {images().string()};
    options_.out = folder() / "out";
  }
  fs::path images() const { return folder() / "images"; }
  std::string error() const { return run_images(options_).status().message(); }

  RunOptions options_;
};

TEST_F(RunImagesTest, WritesDetectionsCocoResultsAndPictures) {
  const auto result = run_images(options_);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->images.size(), 2U);
  EXPECT_THAT(result->images[0].name, HasSubstr("a.png"));  // by name
  EXPECT_EQ(result->images[1].image_id, 2);
  const auto detections = read_json_file(options_.out / "detections.json");
  ASSERT_TRUE(detections.ok());
  EXPECT_EQ(dump_json(*detections), dump_json(to_json(*result)));
  const Json& first = (*detections)["images"][1]["detections"][0];
  EXPECT_EQ(first["class"], "cross");
  EXPECT_EQ(first["box"].dump(), "[10.0,10.0,30.0,20.0]");
  const auto coco = read_json_file(options_.out / "coco_results.json");
  ASSERT_TRUE(coco.ok());
  EXPECT_EQ((*coco)[1].dump(),
            R"({"image_id":2,"category_id":1,"bbox":[10.0,10.0,20.0,10.0],"score":1.0})");
  EXPECT_TRUE(read_image(options_.out / "drawn" / "b.png").ok());
}

TEST_F(RunImagesTest, IdsComeFromAnnotationsBesideTheImages) {
  std::ofstream(images() / "annotations.json") << R"({
    "images": [{"id": 70, "file_name": "b.png", "width": 40, "height": 20}],
    "categories": [{"id": 5, "name": "cross"}, {"id": 6, "name": "circle"}], "annotations": []})";
  const auto result = run_images(options_);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->image_ids, "annotations.json");
  EXPECT_EQ(result->images[0].image_id, 71);  // not named there
  EXPECT_EQ(result->images[1].image_id, 70);
  const auto coco = read_json_file(options_.out / "coco_results.json");
  EXPECT_EQ((*coco)[1]["category_id"], 5);
  EXPECT_EQ((*coco)[0]["category_id"], 6);
}

TEST_F(RunImagesTest, ACorruptImageIsReportedAndTheRestIsDone) {
  std::ofstream(images() / "aa.jpg") << "\xFF\xD8\xFF broken";
  const auto result = run_images(options_);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->images.size(), 2U);
  ASSERT_EQ(result->failures.size(), 1U);
  EXPECT_THAT(result->failures[0].message, HasSubstr("aa.jpg"));
  EXPECT_THAT(dump_json(to_json(*result)), HasSubstr("\"failures\""));
}

TEST_F(RunImagesTest, ImagesOfOneNameDoNotReplaceEachOther) {
  fs::create_directories(folder() / "more");
  ASSERT_TRUE(write_png(folder() / "more" / "a.png", coloured(9, 9, 0, 0, 0)).ok());
  options_.images.push_back((folder() / "more").string());
  const auto result = run_images(options_);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_THAT(result->images[2].drawn, HasSubstr("a_2.png"));
}

TEST_F(RunImagesTest, RawFramesFromAStream) {
  std::string bytes;
  for (const Image& frame : {coloured(6, 4, 255, 0, 0), coloured(6, 4, 0, 255, 0)})
    bytes.append(frame.pixels.begin(), frame.pixels.end());
  std::istringstream stream(bytes + "half");
  options_.images = {"-"};
  options_.stream = &stream;
  EXPECT_THAT(error(), HasSubstr("--size"));
  options_.frame_width = 6;
  options_.frame_height = 4;
  std::vector<std::string> seen;
  options_.on_image = [&](const ImageDetections& image) { seen.push_back(image.name); };
  const auto result = run_images(options_);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_THAT(seen, ElementsAre("frame 1", "frame 2"));
  EXPECT_EQ(result->images[0].detections[0].label, 1);
  EXPECT_EQ(result->images[1].detections[0].label, 0);
  ASSERT_EQ(result->failures.size(), 1U);
  EXPECT_THAT(result->failures[0].message, HasSubstr("frame 3: the stream ends after 4 of 72"));
  options_.frame_format = ImageFormat::kUnknown;
  EXPECT_THAT(error(), HasSubstr("rgb8, bgr8"));
  options_.frame_format = ImageFormat::kNv12;
  options_.frame_width = 5;
  EXPECT_THAT(error(), HasSubstr("even width"));
}

TEST_F(RunImagesTest, WrongArguments) {
  options_.images = {(folder() / "nowhere").string()};
  EXPECT_THAT(error(), HasSubstr("nowhere"));
  options_.images = {"-", images().string()};
  EXPECT_THAT(error(), HasSubstr("stands alone"));
  options_.images = {};
  EXPECT_THAT(error(), HasSubstr("no images"));
  fs::create_directories(folder() / "empty");
  options_.images = {(folder() / "empty").string()};
  EXPECT_THAT(error(), HasSubstr("holds no image"));
  options_.images = {images().string()};
  options_.score_threshold = 1.5F;
  EXPECT_THAT(error(), HasSubstr("[0,1)"));
  EXPECT_FALSE(fs::exists(folder() / "out"));
}

// The trained detector of examples/models on held-out images: names of classes, order of colours,
// size and scale must all be right for it to find what was drawn.
TEST_F(PipelineTest, TheExampleModelFindsTheShapes) {
  const fs::path models = fs::path(TENONNX_TEST_SOURCE_DIR) / "examples" / "models";
  const auto model = Model::load(models / "shapes_deimv2.onnx");
  ASSERT_TRUE(model.ok()) << model.status().message();
  fs::create_directories(package());
  ASSERT_TRUE(model->save(package() / "model.onnx").ok());
  Manifest manifest = test_manifest();
  manifest.contract = *read_contract(models / "shapes_deimv2.contract.json");
  manifest.segments = {{"model", "model.onnx", "cpu", model->inputs(), model->outputs()}};
  manifest.boundaries = {};
  const Status written = write_package(package(), manifest);
  ASSERT_TRUE(written.ok()) << written.message();

  ShapesOptions shapes;
  shapes.count = 4;
  shapes.out = folder() / "shapes";
  ASSERT_TRUE(write_shapes_dataset(shapes).ok());
  RunOptions options;
  options.package = package();
  options.images = {shapes.out.string()};
  options.out = folder() / "out";
  options.score_threshold = 0.5F;
  const auto result = run_images(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  int objects = 0, hits = 0;
  for (int i = 0; i < shapes.count; ++i) {
    const auto truth = make_shapes_image(shapes.seed + static_cast<std::uint64_t>(i));
    const auto& found = result->images[static_cast<std::size_t>(i)];
    EXPECT_EQ(found.image_id, static_cast<std::int64_t>(shapes.seed) + i);
    for (const ShapesObject& object : truth.objects) {
      ++objects;
      const Box box = {static_cast<float>(object.x0), static_cast<float>(object.y0),
                       static_cast<float>(object.x1), static_cast<float>(object.y1)};
      for (const Detection& d : found.detections)
        if (d.label == object.label && iou(d.box, box) > 0.75) {
          ++hits;
          break;
        }
    }
  }
  // mAP50 is 0.93 on 200 images; a wrong colour order or scale leaves a fraction of it.
  EXPECT_GE(hits, objects * 0.8) << hits << " of " << objects;
  EXPECT_GE(objects, 4);
}

TEST(ShapesDataset, WritesImagesAndAnnotations) {
  TemporaryDirectory folder;
  ShapesOptions options;
  options.count = 3;
  options.out = folder.path() / "shapes";
  const Status status = write_shapes_dataset(options);
  ASSERT_TRUE(status.ok()) << status.message();
  const auto image = read_image(options.out / "shapes_001000002.png");
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(image->width, 160);
  const auto annotations = read_json_file(options.out / "annotations.json");
  ASSERT_TRUE(annotations.ok());
  EXPECT_EQ((*annotations)["images"].size(), 3U);
  EXPECT_EQ((*annotations)["images"][2]["id"], 1'000'002);
  EXPECT_EQ(write_shapes_dataset(options).code(), StatusCode::kFailedPrecondition);
  options.force = true;
  options.count = 1;
  EXPECT_TRUE(write_shapes_dataset(options).ok());
  EXPECT_FALSE(fs::exists(options.out / "shapes_001000002.png"));
  options.count = 0;
  EXPECT_THAT(write_shapes_dataset(options).message(), HasSubstr("got 0"));
}

}  // namespace
}  // namespace tenonnx
