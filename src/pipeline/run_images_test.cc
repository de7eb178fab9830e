// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/run_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "contract/contract.h"
#include "eval/shapes.h"
#include "metrics/detections.h"
#include "pipeline/dataset.h"
#include "pipeline/image_file.h"
#include "pipeline/test_package.h"

namespace tenonnx {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST_F(RunImagesTest, ResultsDoNotGoIntoThePackage) {
  for (const fs::path& out : {fs::path(options_.package), fs::path(options_.package) / "out"}) {
    options_.out = out;
    EXPECT_THAT(error(), HasSubstr("that is in the package"));
    EXPECT_FALSE(fs::exists(out / "drawn"));
  }
  options_.out = fs::path(options_.package.string() + "_results");  // beside it, named like it
  EXPECT_EQ(error(), "");
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
  manifest.contract.cut = {};  // the whole graph
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
  // A person's own images are not ours to replace.
  std::ofstream(options.out / "holiday.png") << "precious";
  EXPECT_THAT(write_shapes_dataset(options).message(),
              HasSubstr("holds 'holiday.png', which is not part of a dataset of shapes"));
  EXPECT_TRUE(fs::exists(options.out / "holiday.png"));
  options.count = 0;
  EXPECT_THAT(write_shapes_dataset(options).message(), HasSubstr("got 0"));
}

}  // namespace
}  // namespace tenonnx
