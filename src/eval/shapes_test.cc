// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "eval/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.h"

namespace tenonnx {
namespace {

using ::testing::HasSubstr;
using Objects = std::vector<ShapesObject>;

std::string digest(const std::vector<std::uint8_t>& bytes) {
  return sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// The digests come from the Python generator that made the training data of the example model:
// hashlib.sha256(pixels.tobytes()).hexdigest() of its image for each seed.
TEST(Shapes, SameBitsAsThePythonGenerator) {
  struct Expected {
    std::uint64_t seed;
    std::string_view sha256;
    Objects objects;
  };
  const std::vector<Expected> expected = {
      {0,
       "7655f222bf3d7b9f6b9226711ffc8253b445824bf181085e95482dc6a8a62867",
       {{3, 69, 31, 124, 86}, {2, 103, 85, 114, 98}, {0, 93, 59, 156, 122}}},
      {1,
       "c6599b7f3337fba9d493bc94ed3a28750f8d17c60463278647a147dc9e455398",
       {{2, 120, 4, 159, 35}, {0, 39, 18, 60, 39}, {2, 95, 90, 138, 127}, {1, 2, 32, 29, 67}}},
      {2,
       "1e9312039ad2effa28d3bc5fc89dd0a1a445dcc0aa4b465fffac59f6bcf48000",
       {{3, 48, 66, 69, 87}, {1, 94, 115, 113, 132}, {3, 74, 133, 89, 148}, {1, 50, 26, 65, 39}}},
      {1000000,
       "5b6a6847143098d2dc691a1669aa0ef622bef3609cd016973dadc796eeb56a2d",
       {{3, 26, 105, 47, 126},
        {3, 77, 66, 98, 87},
        {2, 64, 41, 75, 52},
        {1, 21, 133, 42, 154},
        {0, 95, 59, 142, 106},
        {1, 114, 27, 145, 62}}},
      {1000001,
       "84ece85819a92a8eeebb5a4c0c67288770e6d94b1b6ea8aefbc5cf133bded2f3",
       {{0, 58, 59, 101, 102}, {1, 50, 10, 77, 37}}},
      // Seeds beyond 32 bits, where a generator with a narrower state would repeat itself.
      {4294967301,
       "9ebffa24684f7bbfcd80919be7f854bc7684f279e60b0c7221344103783b0673",
       {{1, 95, 85, 142, 128}, {1, 122, 86, 145, 101}, {0, 32, 103, 85, 156}}},
      {9223372036854775807u,
       "e93e26f3a935f84f8756ee4dc0d95c42a6633ad61e21021400598419480e8089",
       {{2, 70, 106, 109, 139}}},
  };
  for (const Expected& e : expected) {
    const ShapesImage image = make_shapes_image(e.seed);
    EXPECT_EQ(digest(image.rgb), e.sha256) << "seed " << e.seed;
    EXPECT_EQ(image.objects, e.objects) << "seed " << e.seed;
  }
}

// One digest over 400 images: for each seed in 0..199 and 1000000..1000199 the pixels, then its
// objects as int32 little endian [n,5] of label, x0, y0, x1, y1; made by the Python generator.
TEST(Shapes, SameBitsOverFourHundredImages) {
  std::vector<std::uint8_t> all;
  std::size_t objects = 0;
  for (std::uint64_t first : {std::uint64_t{0}, kShapesHeldOutSeed}) {
    for (std::uint64_t seed = first; seed < first + 200; ++seed) {
      const ShapesImage image = make_shapes_image(seed);
      all.insert(all.end(), image.rgb.begin(), image.rgb.end());
      objects += image.objects.size();
      for (const ShapesObject& o : image.objects) {
        for (int v : {o.label, o.x0, o.y0, o.x1, o.y1}) {
          all.push_back(static_cast<std::uint8_t>(v));  // 0 to 160 each
          all.insert(all.end(), 3, 0);
        }
      }
    }
  }
  EXPECT_EQ(objects, 1669u);
  EXPECT_EQ(digest(all), "ccc156e348bd924b642f303e849a6bed23738bc4ea38e658848fc51a5e46f438");
}

TEST(Shapes, AnnotationsAreTheObjects) {
  const std::vector<std::uint64_t> seeds = {kShapesHeldOutSeed + 1, 0};
  const auto dataset = shapes_annotations(seeds);
  ASSERT_TRUE(dataset.ok());
  ASSERT_EQ(dataset->categories.size(), 4u);
  EXPECT_EQ(dataset->categories[3].id, 3);
  EXPECT_EQ(dataset->categories[3].name, "cross");
  ASSERT_EQ(dataset->images.size(), 2u);
  EXPECT_EQ(dataset->images[0].id, 1000001);
  EXPECT_EQ(dataset->images[0].file_name, "shapes_001000001.png");
  EXPECT_EQ(dataset->images[0].width, 160);
  ASSERT_EQ(dataset->annotations.size(), 5u);
  const CocoAnnotation& first = dataset->annotations[0];
  EXPECT_EQ(first.id, 1);  // pycocotools takes id 0 for "no match"
  EXPECT_EQ(first.image_id, 1000001);
  EXPECT_EQ(first.category_id, 0);
  EXPECT_EQ(first.bbox, (CocoBox{58, 59, 43, 43}));
  EXPECT_EQ(first.area, 43 * 43);
  EXPECT_TRUE(parse_coco_annotations(to_json(*dataset), "shapes").ok());
}

TEST(Shapes, RefusesSeedsThatAreNoIds) {
  const std::vector<std::uint64_t> twice = {5, 5}, large = {std::uint64_t{1} << 63};
  EXPECT_THAT(shapes_annotations(twice).status().message(), HasSubstr("seed 5 is given twice"));
  EXPECT_THAT(shapes_annotations(large).status().message(), HasSubstr("9223372036854775808"));
}

}  // namespace
}  // namespace tenonnx
