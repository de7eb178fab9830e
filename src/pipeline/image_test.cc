// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/draw.h"
#include "pipeline/resize.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ImageView view(const std::vector<std::uint8_t>& bytes, int width, int height, ImageFormat format,
               int stride = 0) {
  return {bytes.data(), width, height, stride, format};
}

TEST(Image, EveryFormatBecomesRgb) {
  using Bytes = std::vector<std::uint8_t>;
  const Bytes rgb = {1, 2, 3, 4, 5, 6};
  const Bytes bgr = {3, 2, 1, 6, 5, 4}, rgba = {1, 2, 3, 9, 4, 5, 6, 0},
              bgra = {3, 2, 1, 9, 6, 5, 4, 0}, grey = {7, 8};
  EXPECT_EQ(to_rgb(view(rgb, 2, 1, ImageFormat::kRgb8))->pixels, rgb);
  EXPECT_EQ(to_rgb(view(bgr, 2, 1, ImageFormat::kBgr8))->pixels, rgb);
  EXPECT_EQ(to_rgb(view(rgba, 2, 1, ImageFormat::kRgba8))->pixels, rgb);
  EXPECT_EQ(to_rgb(view(bgra, 2, 1, ImageFormat::kBgra8))->pixels, rgb);
  EXPECT_EQ(to_rgb(view(grey, 2, 1, ImageFormat::kGray8))->pixels, (Bytes{7, 7, 7, 8, 8, 8}));
}

TEST(Image, StrideSkipsWhatIsBehindARow) {
  const std::vector<std::uint8_t> bytes = {1, 2, 3, 99, 99, 4, 5, 6, 99, 99};
  EXPECT_EQ(to_rgb(view(bytes, 1, 2, ImageFormat::kRgb8, 5))->pixels,
            (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Image, Nv12IsBt601LimitedRange) {
  // Two rows of two pixels with a stride of 4: black, white, and the chroma of red.
  const std::vector<std::uint8_t> grey = {16, 235, 0, 0, 16, 235, 0, 0, 128, 128, 0, 0};
  const auto plain = to_rgb(view(grey, 2, 2, ImageFormat::kNv12, 4));
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  // 16 is black and 235 is white: the definition of limited range.
  EXPECT_EQ(plain->pixels,
            (std::vector<std::uint8_t>{0, 0, 0, 255, 255, 255, 0, 0, 0, 255, 255, 255}));
  // BT.601's red is Y 81, Cb 90, Cr 240; 8-bit rounding of the three is worth up to 2 levels.
  const std::vector<std::uint8_t> red = {81, 81, 81, 81, 90, 240};
  const auto image = to_rgb(view(red, 2, 2, ImageFormat::kNv12));
  ASSERT_TRUE(image.ok());
  EXPECT_NEAR(image->pixels[0], 255, 2);
  EXPECT_NEAR(image->pixels[1], 0, 2);
  EXPECT_NEAR(image->pixels[2], 0, 2);
}

TEST(Image, RefusesWhatItCannotRead) {
  const std::vector<std::uint8_t> bytes(64);
  EXPECT_EQ(to_rgb(view(bytes, 2, 2, ImageFormat::kUnknown)).status().code(),
            StatusCode::kUnsupported);
  EXPECT_THAT(to_rgb(view(bytes, 2, 2, ImageFormat::kUnknown)).status().message(),
              HasSubstr("rgb8, bgr8, gray8, rgba8, bgra8, nv12"));
  EXPECT_THAT(to_rgb(view(bytes, 0, 2, ImageFormat::kRgb8)).status().message(),
              HasSubstr("empty: 0 x 2"));
  EXPECT_THAT(to_rgb({}).status().message(), HasSubstr("no data"));
  EXPECT_THAT(to_rgb(view(bytes, 4, 2, ImageFormat::kRgb8, 11)).status().message(),
              AllOf(HasSubstr("11 bytes"), HasSubstr("12 bytes of a row")));
  EXPECT_THAT(to_rgb(view(bytes, 3, 2, ImageFormat::kNv12)).status().message(),
              HasSubstr("even width and height, got 3 x 2"));
  EXPECT_THAT(to_rgb(view(bytes, 100'000, 100'000, ImageFormat::kRgb8)).status().message(),
              HasSubstr("100 megapixels"));
}

TEST(Image, FormatsHaveNames) {
  EXPECT_EQ(*image_format_from_string("nv12"), ImageFormat::kNv12);
  EXPECT_THAT(image_format_from_string("yuyv").status().message(),
              AllOf(HasSubstr("\"yuyv\""), HasSubstr("rgb8")));
  EXPECT_EQ(frame_bytes(ImageFormat::kNv12, 4, 2), 12U);
  EXPECT_EQ(frame_bytes(ImageFormat::kBgra8, 4, 2), 32U);
}

Image ramp(int width, int height, int channels) {
  Image image(width, height, channels);
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<std::uint8_t>(i * 37 % 251);
  return image;
}

// The full comparison with Pillow is tests/pillow_reference; these values are worked out by hand.
TEST(Resize, TheTriangleFilter) {
  Image two(2, 1, 1);
  two.pixels = {0, 100};
  // Centres at 0.25, 0.75, 1.25, 1.75 of the input: weights 1, 1/4, 3/4, 1 of the second pixel.
  EXPECT_EQ(resize_pillow_bilinear(two, 4, 1)->pixels, (std::vector<std::uint8_t>{0, 25, 75, 100}));
  // Down by 4 the triangle covers the row: the centre is at 2, the distances 1.5, 0.5, 0.5, 1.5 of
  // 4, the weights 5, 7, 7, 5 of 24.
  Image four(4, 1, 1);
  four.pixels = {24, 48, 72, 96};
  EXPECT_EQ(resize_pillow_bilinear(four, 1, 1)->pixels, (std::vector<std::uint8_t>{60}));
}

TEST(Resize, OnePixelBecomesAnyNumberOfItself) {
  Image one(1, 1, 3);
  one.pixels = {10, 20, 255};
  for (const auto& resized : {*resize_pillow_bilinear(one, 7, 5), *resize_opencv_linear(one, 7, 5)})
    for (int i = 0; i < 35; ++i) {
      EXPECT_EQ(resized.pixels[static_cast<std::size_t>(i) * 3], 10);
      EXPECT_EQ(resized.pixels[static_cast<std::size_t>(i) * 3 + 2], 255);
    }
}

TEST(Resize, TheSameSizeIsTheSameImage) {
  const Image image = ramp(9, 7, 3);
  EXPECT_EQ(*resize_pillow_bilinear(image, 9, 7), image);
  EXPECT_EQ(*resize_opencv_linear(image, 9, 7), image);
}

TEST(Resize, TransparentPixelsDoNotBleed) {
  Image two(2, 1, 4);
  two.pixels = {200, 100, 50, 255, 255, 255, 255, 0};  // the white one is invisible
  const auto one = resize_pillow_bilinear(two, 1, 1);
  ASSERT_TRUE(one.ok());
  EXPECT_NEAR(one->pixels[0], 200, 1);  // premultiplied values are rounded to 8 bits
  EXPECT_EQ(one->pixels[3], 128);
}

TEST(Resize, RefusesImpossibleSizes) {
  const Image image = ramp(4, 4, 3);
  EXPECT_THAT(resize_pillow_bilinear(image, 0, 4).status().message(), HasSubstr("at least 1"));
  EXPECT_THAT(resize_opencv_linear(image, 4, -1).status().message(), HasSubstr("at least 1"));
  EXPECT_THAT(resize_pillow_bilinear(image, 20'000, 20'000).status().message(),
              HasSubstr("100 megapixels"));
  Image broken = image;
  broken.pixels.pop_back();
  EXPECT_THAT(resize_pillow_bilinear(broken, 2, 2).status().message(), HasSubstr("47 bytes"));
}

TEST(Draw, EnlargesSmallImagesAndColoursByClass) {
  const Image image(160, 160, 3);
  const std::vector<Detection> detections = {{0, 0.9F, {20, 30, 60, 70}},
                                             {1, 0.5F, {80, 90, 140, 150}}};
  const auto drawn = draw_detections(image, detections, {"circle", "cross"});
  ASSERT_TRUE(drawn.ok()) << drawn.status().message();
  EXPECT_EQ(drawn->width, 480);
  EXPECT_EQ(drawn->height, 480);
  const auto pixel = [&](int x, int y) {
    const std::uint8_t* p = drawn->row(y) + static_cast<std::ptrdiff_t>(x) * 3;
    return std::vector<int>{p[0], p[1], p[2]};
  };
  // On the right edges, away from the labels: the frames, of two colours; inside: untouched.
  EXPECT_NE(pixel(180, 180), (std::vector<int>{0, 0, 0}));
  EXPECT_NE(pixel(420, 400), (std::vector<int>{0, 0, 0}));
  EXPECT_NE(pixel(180, 180), pixel(420, 400));
  EXPECT_EQ(pixel(120, 180), (std::vector<int>{0, 0, 0}));
}

TEST(Draw, SurvivesBoxesFarOutside) {
  const Image image(50, 700, 3);
  const std::vector<Detection> detections = {{99, 1.0F, {-1e9F, -1e9F, 1e9F, 1e9F}},
                                             {0, 0.3F, {40, 690, 20, 10}}};
  const auto drawn = draw_detections(image, detections, {});
  ASSERT_TRUE(drawn.ok()) << drawn.status().message();
  EXPECT_EQ(drawn->width, 500);  // 50 pixels times 10 reach 480
  EXPECT_EQ(class_name({"a"}, 1), "class 1");
}

}  // namespace
}  // namespace tenonnx
