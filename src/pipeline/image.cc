// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/image.h"

#include <array>
#include <cstring>
#include <opencv2/imgproc.hpp>
#include <string>
#include <utility>

#include "base/status.h"

namespace tenonnx {
namespace {

struct FormatInfo {
  ImageFormat format;
  std::string_view name;
  int channels;  // bytes of a pixel; for NV12 those of the luma plane
};

constexpr std::array kFormats = {
    FormatInfo{ImageFormat::kRgb8, "rgb8", 3},   FormatInfo{ImageFormat::kBgr8, "bgr8", 3},
    FormatInfo{ImageFormat::kGray8, "gray8", 1}, FormatInfo{ImageFormat::kRgba8, "rgba8", 4},
    FormatInfo{ImageFormat::kBgra8, "bgra8", 4}, FormatInfo{ImageFormat::kNv12, "nv12", 1}};

const FormatInfo* find(ImageFormat format) {
  for (const FormatInfo& info : kFormats)
    if (info.format == format) return &info;
  return nullptr;
}

std::string format_names() {
  std::string names;
  for (const FormatInfo& info : kFormats)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  return names;
}

Status check(const ImageView& view, const FormatInfo& info) {
  if (view.data == nullptr || view.width <= 0 || view.height <= 0)
    return InvalidArgument("the image is empty: {} x {} pixels{}", view.width, view.height,
                           view.data == nullptr ? ", no data" : "");
  if (static_cast<std::int64_t>(view.width) * view.height > kMaxPixels)
    return InvalidArgument("the image has {} x {} pixels; at most {} megapixels are accepted",
                           view.width, view.height, kMaxPixels / 1'000'000);
  const int row = view.width * info.channels;
  if (view.stride != 0 && view.stride < row)
    return InvalidArgument("a stride of {} bytes is below the {} bytes of a row ({} pixels {})",
                           view.stride, row, view.width, info.name);
  if (info.format == ImageFormat::kNv12 && (view.width % 2 != 0 || view.height % 2 != 0))
    return InvalidArgument("nv12 needs even width and height, got {} x {}", view.width,
                           view.height);
  return {};
}

Result<Image> nv12_to_rgb(const ImageView& view, std::size_t stride) {
  try {
    // OpenCV only reads from these.
    auto* luma = const_cast<std::uint8_t*>(view.data);
    auto* chroma = luma + stride * static_cast<std::size_t>(view.height);
    Image image(view.width, view.height, 3);
    cv::Mat rgb(view.height, view.width, CV_8UC3, image.pixels.data());
    cv::cvtColorTwoPlane(cv::Mat(view.height, view.width, CV_8UC1, luma, stride),
                         cv::Mat(view.height / 2, view.width / 2, CV_8UC2, chroma, stride), rgb,
                         cv::COLOR_YUV2RGB_NV12);
    return image;
  } catch (const std::exception& error) {
    return Internal("OpenCV could not convert an NV12 image: {}", error.what());
  }
}

}  // namespace

std::string_view to_string(ImageFormat format) {
  const FormatInfo* info = find(format);
  return info == nullptr ? "unknown" : info->name;
}

Result<ImageFormat> image_format_from_string(std::string_view name) {
  for (const FormatInfo& info : kFormats)
    if (info.name == name) return info.format;
  return Unsupported("pixel format \"{}\" is not one of {}", name, format_names());
}

std::size_t frame_bytes(ImageFormat format, int width, int height) {
  const FormatInfo* info = find(format);
  if (info == nullptr) return 0;
  const std::size_t pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  return format == ImageFormat::kNv12 ? pixels / 2 * 3 : pixels * info->channels;
}

Status check_view(const ImageView& view) {
  const FormatInfo* info = find(view.format);
  if (info == nullptr)
    return Unsupported("image format {} is not one of {}", static_cast<int>(view.format),
                       format_names());
  return check(view, *info);
}

Result<Image> to_rgb(const ImageView& view) {
  TENONNX_RETURN_IF_ERROR(check_view(view));
  const FormatInfo* info = find(view.format);
  const std::size_t stride = view.stride != 0 ? static_cast<std::size_t>(view.stride)
                                              : static_cast<std::size_t>(view.width) *
                                                    static_cast<std::size_t>(info->channels);
  if (view.format == ImageFormat::kNv12) return nv12_to_rgb(view, stride);
  Image image(view.width, view.height, 3);
  const bool grey = view.format == ImageFormat::kGray8;
  const bool blue_first = view.format == ImageFormat::kBgr8 || view.format == ImageFormat::kBgra8;
  const int red = grey ? 0 : (blue_first ? 2 : 0), green = grey ? 0 : 1,
            blue = grey ? 0 : (blue_first ? 0 : 2);
  for (int y = 0; y < view.height; ++y) {
    const std::uint8_t* from = view.data + stride * static_cast<std::size_t>(y);
    std::uint8_t* to = image.row(y);
    if (view.format == ImageFormat::kRgb8) {
      std::memcpy(to, from, static_cast<std::size_t>(view.width) * 3);
      continue;
    }
    for (int x = 0; x < view.width; ++x, from += info->channels, to += 3) {
      to[0] = from[red];
      to[1] = from[green];
      to[2] = from[blue];
    }
  }
  return image;
}

ImageView view_of(const Image& image) {
  ImageView view;
  view.data = image.pixels.data();
  view.width = image.width;
  view.height = image.height;
  view.format = image.channels == 1   ? ImageFormat::kGray8
                : image.channels == 4 ? ImageFormat::kRgba8
                                      : ImageFormat::kRgb8;
  return view;
}

}  // namespace tenonnx
