// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "pipeline/image_codecs.h"
#include "pipeline/image_file.h"

namespace tenonnx {
namespace {

// What survives a longjmp of libpng: it lives in the caller's frame.
struct Coding {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view in;  // what is not yet read
  bool truncated = false;
  std::string out;
  char message[256] = "";
  Image image;
  std::vector<png_bytep> rows;
  Status status;
  int orientation = 1;
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* c = static_cast<Coding*>(png_get_error_ptr(png));
  std::snprintf(c->message, sizeof(c->message), "%s", message);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep to, std::size_t count) {
  auto* c = static_cast<Coding*>(png_get_io_ptr(png));
  if (c->in.size() < count) {
    c->truncated = true;
    png_error(png, "the file ends too early");
  }
  std::memcpy(to, c->in.data(), count);
  c->in.remove_prefix(count);
}
void on_write(png_structp png, png_bytep from, std::size_t count) {
  static_cast<Coding*>(png_get_io_ptr(png))->out.append(reinterpret_cast<const char*>(from), count);
}
void on_flush(png_structp) {}

// Runs under setjmp: declares no object that has a destructor.
void read(Coding& c, std::string_view where) {
  png_set_read_fn(c.png, &c, on_read);
  // A text or profile chunk of a few KB may inflate to gigabytes; none is needed.
  png_set_chunk_malloc_max(c.png, 8'000'000);
  png_set_user_limits(c.png, 0x7FFFFFFF, 0x7FFFFFFF);
  png_read_info(c.png, c.info);
  const png_uint_32 width = png_get_image_width(c.png, c.info);
  const png_uint_32 height = png_get_image_height(c.png, c.info);
  c.status = check_image_size(width, height, where);
  if (!c.status.ok()) return;
  const int type = png_get_color_type(c.png, c.info);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(c.png);
  if (png_get_bit_depth(c.png, c.info) < 8 && type == PNG_COLOR_TYPE_GRAY)
    png_set_expand_gray_1_2_4_to_8(c.png);
  png_set_strip_16(c.png);
  // Also for a palette with transparency, which the expansion turns into alpha.
  png_set_strip_alpha(c.png);
  if (type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_GRAY_ALPHA) png_set_gray_to_rgb(c.png);
  png_set_interlace_handling(c.png);
  png_read_update_info(c.png, c.info);
  c.image = Image(static_cast<int>(width), static_cast<int>(height), 3);
  if (png_get_rowbytes(c.png, c.info) != static_cast<std::size_t>(width) * 3)
    png_error(c.png, "an unexpected row size");
  for (png_uint_32 y = 0; y < height; ++y) c.rows.push_back(c.image.row(static_cast<int>(y)));
  png_read_image(c.png, c.rows.data());
  png_read_end(c.png, c.info);
  png_uint_32 size = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(c.png, c.info, &size, &exif) != 0)
    c.orientation = exif_orientation({reinterpret_cast<const char*>(exif), size});
}

void write(Coding& c) {
  png_set_write_fn(c.png, &c, on_write, on_flush);
  const int type = c.image.channels == 1   ? PNG_COLOR_TYPE_GRAY
                   : c.image.channels == 4 ? PNG_COLOR_TYPE_RGB_ALPHA
                                           : PNG_COLOR_TYPE_RGB;
  png_set_IHDR(c.png, c.info, static_cast<png_uint_32>(c.image.width),
               static_cast<png_uint_32>(c.image.height), 8, type, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(c.png, c.info);
  for (int y = 0; y < c.image.height; ++y) png_write_row(c.png, c.image.row(y));
  png_write_end(c.png, c.info);
}

}  // namespace

Result<DecodedFile> decode_png(std::string_view bytes, std::string_view where) {
  Coding c;
  c.in = bytes;
  c.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &c, on_error, on_warning);
  if (c.png != nullptr) c.info = png_create_info_struct(c.png);
  if (c.info == nullptr) {
    png_destroy_read_struct(&c.png, nullptr, nullptr);
    return Internal("{}: libpng could not be set up", where);
  }
  if (setjmp(png_jmpbuf(c.png)) == 0)
    read(c, where);
  else if (c.truncated)
    c.status =
        DataLoss("{}: the PNG is truncated: it ends after {} bytes, in the middle of a chunk",
                 where, bytes.size());
  else
    c.status = DataLoss("{}: a PNG that cannot be decoded: {}", where, c.message);
  png_destroy_read_struct(&c.png, &c.info, nullptr);
  TENONNX_RETURN_IF_ERROR(c.status);
  return DecodedFile{std::move(c.image), c.orientation};
}

Result<std::string> encode_png(const Image& image) {
  const bool known = image.channels == 1 || image.channels == 3 || image.channels == 4;
  if (image.width < 1 || image.height < 1 || !known ||
      image.pixels.size() != static_cast<std::size_t>(image.width) * image.height * image.channels)
    return InvalidArgument("cannot write a PNG of {} x {} x {} with {} bytes", image.width,
                           image.height, image.channels, image.pixels.size());
  Coding c;
  c.image = image;
  c.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &c, on_error, on_warning);
  if (c.png != nullptr) c.info = png_create_info_struct(c.png);
  if (c.info == nullptr) {
    png_destroy_write_struct(&c.png, nullptr);
    return Internal("libpng could not be set up");
  }
  if (setjmp(png_jmpbuf(c.png)) == 0)
    write(c);
  else
    c.status = Internal("a PNG could not be written: {}", c.message);
  png_destroy_write_struct(&c.png, &c.info);
  TENONNX_RETURN_IF_ERROR(c.status);
  return std::move(c.out);
}

Status write_png(const std::filesystem::path& path, const Image& image) {
  TENONNX_ASSIGN_OR_RETURN(const std::string bytes, encode_png(image));
  return write_file_atomic(path, bytes);
}

}  // namespace tenonnx
