// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "eval/coco.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/temporary_directory.h"

namespace tenonnx {
namespace {

using ::testing::HasSubstr;

Json small() {
  return Json::parse(R"({
    "info": {"year": 2017},
    "images": [{"id": 7, "file_name": "a.jpg", "width": 640, "height": 480}],
    "categories": [{"id": 3, "name": "traffic light", "supercategory": "outdoor"}],
    "annotations": [{"id": 1, "image_id": 7, "category_id": 3, "bbox": [10, 20.5, 30, 40],
                     "area": 600.25, "iscrowd": 1, "segmentation": {"counts": "x"}}]
  })");
}

void expect_error(const Json& json, std::string_view what, std::string_view path) {
  const auto parsed = parse_coco_annotations(json, "a.json");
  ASSERT_FALSE(parsed.ok()) << what;
  EXPECT_EQ(parsed.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(parsed.status().message(), HasSubstr(std::string(what)));
  EXPECT_THAT(parsed.status().message(), HasSubstr("a.json"));
  EXPECT_THAT(parsed.status().message(), HasSubstr(std::string(path)));
}

TEST(CocoAnnotations, ReadsWhatDetectionUses) {
  const auto dataset = parse_coco_annotations(small(), "a.json");
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  ASSERT_EQ(dataset->images.size(), 1u);
  EXPECT_EQ(dataset->images[0].id, 7);
  EXPECT_EQ(dataset->images[0].width, 640);
  EXPECT_EQ(dataset->categories[0].name, "traffic light");
  const CocoAnnotation& a = dataset->annotations[0];
  EXPECT_EQ(a.bbox, (CocoBox{10, 20.5, 30, 40}));
  EXPECT_EQ(a.area, 600.25);
  EXPECT_TRUE(a.iscrowd);
  EXPECT_FALSE(a.ignore);
}

TEST(CocoAnnotations, WritesWhatItReads) {
  const auto dataset = parse_coco_annotations(small(), "a.json");
  TemporaryDirectory directory;
  const auto path = directory.path() / "annotations.json";
  ASSERT_TRUE(write_json_file(path, to_json(*dataset)).ok());
  const auto back = read_coco_annotations(path);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(to_json(*back), to_json(*dataset));
  EXPECT_EQ(back->annotations[0].area, 600.25);
}

TEST(CocoAnnotations, ErrorsNameFieldAndFile) {
  Json json = small();
  json.erase("annotations");
  expect_error(json, "annotations", "a.json");
  json = small();
  json["annotations"][0].erase("area");
  expect_error(json, "area", "/annotations/0");
  json = small();
  json["annotations"][0]["bbox"] = {1, 2, 3};
  expect_error(json, "expected [x, y, width, height], got 3 numbers", "/annotations/0/bbox");
  json = small();
  json["annotations"][0]["bbox"][2] = -1;
  expect_error(json, "width is negative: -1", "/annotations/0/bbox");
  json = small();
  json["annotations"][0]["bbox"][0] = "nan";
  expect_error(json, "expected a finite number", "/annotations/0/bbox");
  json = small();
  json["annotations"][0]["area"] = -4;
  expect_error(json, "area -4", "/annotations/0");
  json = small();
  json["annotations"][0]["image_id"] = 8;
  expect_error(json, "image_id 8 is not among the images", "/annotations/0");
  json = small();
  json["annotations"][0]["category_id"] = 4;
  expect_error(json, "category_id 4 is not among the categories of the file: 3", "/annotations/0");
  json = small();
  json["annotations"][0]["iscrowd"] = 2;
  expect_error(json, "expected 0 or 1, got 2", "/annotations/0/iscrowd");
  json = small();
  json["annotations"][0]["id"] = "one";
  expect_error(json, "id", "/annotations/0");
  json = small();
  json["images"].push_back(json["images"][0]);
  expect_error(json, "image id 7 occurs twice", "/images/1");
  json = small();
  json["images"].push_back(json["images"][0]);
  json["images"][1]["id"] = 8;
  expect_error(json, "occurs twice: which labels are its own?", "/images/1");
  json = small();
  json["annotations"].push_back(json["annotations"][0]);
  expect_error(json, "annotation id 1 occurs twice", "/annotations/1");
  json = small();
  json["categories"].push_back(json["categories"][0]);
  expect_error(json, "category id 3 occurs twice", "/categories/1");
  expect_error(Json::array(), "object", "a.json");
}

TEST(CocoAnnotations, FlagsMayBeBooleans) {
  Json json = small();
  json["annotations"][0]["iscrowd"] = false;
  json["annotations"][0]["ignore"] = true;
  const auto dataset = parse_coco_annotations(json, "a.json");
  ASSERT_TRUE(dataset.ok());
  EXPECT_FALSE(dataset->annotations[0].iscrowd);
  EXPECT_TRUE(dataset->annotations[0].ignore);
}

TEST(CocoResults, RoundTripAndErrors) {
  const std::vector<CocoResult> results = {{7, 3, {1, 2, 3, 4}, 0.1F}, {7, 3, {0, 0, 0, 0}, 0}};
  TemporaryDirectory directory;
  const auto path = directory.path() / "results.json";
  ASSERT_TRUE(write_json_file(path, to_json(std::span<const CocoResult>(results))).ok());
  const auto back = read_coco_results(path);
  ASSERT_TRUE(back.ok()) << back.status().message();
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[0].score, static_cast<double>(0.1F));  // every digit survives
  EXPECT_EQ((*back)[0].bbox, results[0].bbox);

  Json json = to_json(std::span<const CocoResult>(results));
  json[1]["score"] = "inf";
  const auto bad = parse_coco_results(json, "r.json");
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.status().message(), HasSubstr("score is not a finite number"));
  EXPECT_THAT(bad.status().message(), HasSubstr("/1"));
  EXPECT_FALSE(parse_coco_results(Json::object(), "r.json").ok());
  EXPECT_THAT(read_coco_results(directory.path() / "none.json").status().message(),
              HasSubstr("none.json"));
}

TEST(Categories, AreMatchedByName) {
  CocoDataset dataset;
  dataset.categories = {{10, "Traffic_Light"}, {2, "car"}};
  const std::vector<std::string> classes = {"car", "person", "traffic light"};
  const auto ids = match_categories(dataset, classes);
  ASSERT_TRUE(ids.ok()) << ids.status().message();
  EXPECT_EQ(*ids, (std::vector<std::int64_t>{2, -1, 10}));

  const std::vector<std::string> wrong = {"car", "person"};
  EXPECT_THAT(match_categories(dataset, wrong).status().message(),
              HasSubstr("'Traffic_Light' of the annotations is no class of the model; categories: "
                        "Traffic_Light, car; classes: car, person"));
  EXPECT_THAT(match_categories(dataset, {}).status().message(),
              HasSubstr("the contract names no classes, so the categories of the annotations "
                        "(Traffic_Light, car) cannot be matched"));
  dataset.categories.push_back({11, "Car"});
  EXPECT_FALSE(match_categories(dataset, classes).ok());
}

TEST(Detections, BecomeResults) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Detection> detections = {
      {1, 0.5F, {1, 2, 4, 8}},  {0, 0.4F, {1, 2, 4, 8}},  // no category
      {9, 0.4F, {1, 2, 4, 8}},                            // no class
      {-1, 0.4F, {1, 2, 4, 8}},                           // no class
      {1, nan, {1, 2, 4, 8}},   {1, 0.3F, {4, 8, 1, 2}}};
  const std::vector<std::int64_t> categories = {-1, 10};
  const auto results = to_coco_results(7, detections, categories);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].image_id, 7);
  EXPECT_EQ(results[0].category_id, 10);
  EXPECT_EQ(results[0].bbox, (CocoBox{1, 2, 3, 6}));
  EXPECT_EQ(results[1].bbox, (CocoBox{4, 8, 0, 0}));
}

}  // namespace
}  // namespace tenonnx
