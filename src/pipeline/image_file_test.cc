// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Damaged and unusual files. Pixels are compared with Pillow's in tests/pillow_reference.
#include "pipeline/image_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
// jpeglib.h needs FILE.
#include <jpeglib.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>

#include "base/temporary_directory.h"
#include "pipeline/image_codecs.h"

namespace tenonnx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Image noise(int width, int height, int channels) {
  Image image(width, height, channels);
  std::uint32_t state = 7;
  for (auto& pixel : image.pixels) {
    state = state * 1664525U + 1013904223U;
    pixel = static_cast<std::uint8_t>(state >> 24);
  }
  return image;
}

std::string jpeg(const Image& image) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &out, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < image.height; ++y) {
    auto* row = const_cast<JSAMPLE*>(image.row(y));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string bytes(reinterpret_cast<char*>(out), size);
  jpeg_destroy_compress(&info);
  std::free(out);
  return bytes;
}

std::string error(std::string_view bytes) {
  const auto image = decode_image(bytes, "a.img");
  return image.ok() ? "" : image.status().message();
}

void put32(std::string& bytes, std::size_t at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i)
    bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (24 - 8 * i));
}

// A PNG whose header says another size, with the checksum put right.
std::string png_with_size(std::uint32_t width, std::uint32_t height) {
  std::string bytes = *encode_png(noise(4, 4, 3));
  put32(bytes, 16, width);
  put32(bytes, 20, height);
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()) + 12, 17);
  put32(bytes, 29, static_cast<std::uint32_t>(crc));
  return bytes;
}

TEST(ImageFile, PngComesBackAsItWas) {
  for (const int channels : {1, 3}) {
    const Image image = noise(13, 7, channels);
    const auto bytes = encode_png(image);
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(*bytes, *encode_png(image));
    const auto back = decode_image(*bytes, "a.png");
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(*back, *to_rgb(view_of(image)));
  }
}

TEST(ImageFile, OtherFormatsAreNamed) {
  EXPECT_THAT(error("GIF89a......"), AllOf(StartsWith("a.img: "), HasSubstr("looks like GIF"),
                                           HasSubstr("JPEG, PNG and PPM")));
  EXPECT_THAT(error("BM......"), HasSubstr("looks like BMP"));
  EXPECT_THAT(error(std::string_view("RIFF\x10\0\0\0WEBPVP8 ", 16)), HasSubstr("WebP"));
  EXPECT_THAT(error("P3\n1 1 255\n1 2 3\n"), HasSubstr("plain PPM"));
  EXPECT_THAT(error("hello"), HasSubstr("not an image that can be read"));
  EXPECT_THAT(error(""), HasSubstr("empty"));
  EXPECT_EQ(decode_image("GIF89a", "x").status().code(), StatusCode::kUnsupported);
}

TEST(ImageFile, TruncatedFilesAreErrorsAtEveryLength) {
  const Image image = noise(24, 24, 3);
  for (const std::string& whole : {jpeg(image), *encode_png(image)}) {
    ASSERT_TRUE(decode_image(whole, "a").ok());
    for (std::size_t keep = 12; keep + 13 < whole.size(); keep += 7) {
      const auto part = decode_image(whole.substr(0, keep), "a");
      ASSERT_FALSE(part.ok()) << keep;
      EXPECT_EQ(part.status().code(), StatusCode::kDataLoss);
    }
    EXPECT_THAT(error(std::string_view(whole).substr(0, whole.size() / 2)), HasSubstr("truncated"));
  }
  EXPECT_THAT(error("P6 4 4 255\n123"), HasSubstr("need 48 bytes, the file holds 3"));
}

TEST(ImageFile, DamagedFilesAreErrors) {
  std::string png = *encode_png(noise(24, 24, 3));
  png[60] = static_cast<char>(png[60] ^ 0x55);
  EXPECT_THAT(error(png), HasSubstr("a PNG that cannot be decoded"));
  EXPECT_THAT(error("\xFF\xD8\xFF\xD8 nothing of the kind"), HasSubstr("JPEG"));
  EXPECT_THAT(error("P6 four 4 255\n"), HasSubstr("PPM header"));
  EXPECT_THAT(error("P6 1 1 65535\n123456"), HasSubstr("maximum value 65535"));
}

TEST(ImageFile, ASizeOfZeroIsAnError) {
  EXPECT_THAT(error("P6 0 4 255\n"), HasSubstr("size of zero: 0 x 4"));
  EXPECT_FALSE(decode_image(png_with_size(0, 4), "a").ok());
  std::string bytes = jpeg(noise(16, 16, 3));
  const auto frame = bytes.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  bytes[frame + 5] = bytes[frame + 6] = 0;  // the height
  EXPECT_FALSE(decode_image(bytes, "a").ok());
}

TEST(ImageFile, MoreThan100MegapixelsAreRefusedBeforeTheyAreAllocated) {
  EXPECT_THAT(error(png_with_size(20'000, 20'000)),
              AllOf(HasSubstr("20000 x 20000"), HasSubstr("100 megapixels")));
  EXPECT_THAT(error("P6 100000 100000 255\n"), HasSubstr("100 megapixels"));
  std::string bytes = jpeg(noise(16, 16, 3));
  const auto frame = bytes.find("\xFF\xC0");
  for (const std::size_t at : {5, 7}) bytes[frame + at] = static_cast<char>(0x60);
  EXPECT_THAT(error(bytes), HasSubstr("100 megapixels"));
}

TEST(ImageFile, FilesAreNamedInErrors) {
  TemporaryDirectory folder;
  const auto path = folder.path() / "broken.png";
  std::ofstream(path) << "\x89PNG\r\n\x1A\n";
  EXPECT_THAT(read_image(path).status().message(), HasSubstr("broken.png"));
  EXPECT_EQ(read_image(folder.path() / "none.png").status().code(), StatusCode::kNotFound);
}

TEST(ImageFile, NamesOfImages) {
  EXPECT_TRUE(is_image_name("a/b.JPG"));
  EXPECT_TRUE(is_image_name("b.jpeg"));
  EXPECT_FALSE(is_image_name("annotations.json"));
  EXPECT_FALSE(is_image_name("png"));
}

TEST(Exif, BothByteOrdersAndNonsense) {
  const std::string little("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0", 22);
  const std::string big("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0", 22);
  EXPECT_EQ(exif_orientation(little), 6);
  EXPECT_EQ(exif_orientation(big), 8);
  EXPECT_EQ(exif_orientation(little.substr(0, 12)), 1);
  std::string nine = little;
  nine[18] = 9;
  EXPECT_EQ(exif_orientation(nine), 1);
  std::string far = little;
  far[7] = static_cast<char>(0xFF);  // the directory lies beyond the end
  EXPECT_EQ(exif_orientation(far), 1);
  EXPECT_EQ(exif_orientation("II"), 1);
  EXPECT_EQ(xmp_orientation("<x tiff:Orientation=\"3\"/>"), 3);
  EXPECT_EQ(xmp_orientation("<tiff:Orientation>8</tiff:Orientation>"), 8);
  EXPECT_EQ(xmp_orientation("tiff:Orientation=\""), 1);
  EXPECT_EQ(xmp_orientation(""), 1);
}

}  // namespace
}  // namespace tenonnx
