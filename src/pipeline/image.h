// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// Pixels in memory: 8 bits a channel, row-major, packed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tenonnx/base.h"
#include "tenonnx/pipeline.h"

namespace tenonnx {

struct Image {
  int width = 0;
  int height = 0;
  int channels = 3;  // 1 grey, 3 RGB, 4 RGBA
  std::vector<std::uint8_t> pixels;

  Image() = default;
  Image(int w, int h, int c)
      : width(w), height(h), channels(c), pixels(static_cast<std::size_t>(w) * h * c) {}
  std::uint8_t* row(int y) {
    return pixels.data() + static_cast<std::size_t>(y) * width * channels;
  }
  const std::uint8_t* row(int y) const {
    return pixels.data() + static_cast<std::size_t>(y) * width * channels;
  }
  bool operator==(const Image&) const = default;
};

// Largest number of pixels that is decoded or accepted: 100 megapixels. A few bytes of PNG can
// claim far more.
inline constexpr std::int64_t kMaxPixels = 100'000'000;

// "rgb8", "bgr8", "gray8", "rgba8", "bgra8", "nv12"; "unknown".
std::string_view to_string(ImageFormat format);
// Unsupported, with the names that exist.
Result<ImageFormat> image_format_from_string(std::string_view name);
// Bytes of a packed frame. NV12 needs even width and height. 0 for kUnknown.
std::size_t frame_bytes(ImageFormat format, int width, int height);

// Unsupported for kUnknown; InvalidArgument for an empty image, no data, more than 100 megapixels,
// a stride below a row, an odd size of NV12. The pixels are not looked at.
Status check_view(const ImageView& view);

// Any view to packed RGB. Alpha is dropped and grey replicated, as Pillow's convert("RGB") does.
// NV12: BT.601, limited range (what cameras deliver), by cv::cvtColor; the interleaved chroma plane
// follows the luma plane after height * stride bytes, with the same stride. Errors of check_view().
Result<Image> to_rgb(const ImageView& view);

// A view of an Image; valid while the image lives.
ImageView view_of(const Image& image);

}  // namespace tenonnx
