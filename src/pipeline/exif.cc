// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <cstring>
#include <utility>

#include "pipeline/image_codecs.h"

namespace tenonnx {
namespace {

constexpr unsigned kOrientationTag = 0x0112;
constexpr unsigned kShortType = 3, kLongType = 4;

// Reads 16 and 32 bit numbers in the byte order of the header; 0 beyond the end.
class TiffBytes {
 public:
  TiffBytes(std::string_view bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}
  std::uint32_t number(std::size_t at, std::size_t count) const {
    if (at > bytes_.size() || bytes_.size() - at < count) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t byte = big_endian_ ? i : count - 1 - i;
      value = value << 8 | static_cast<unsigned char>(bytes_[at + byte]);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool big_endian_;
};

int in_range(std::uint32_t value) { return value >= 1 && value <= 8 ? static_cast<int>(value) : 1; }

}  // namespace

int exif_orientation(std::string_view tiff) {
  if (!tiff.starts_with("II") && !tiff.starts_with("MM")) return 1;
  const TiffBytes header(tiff, tiff.starts_with("MM"));
  const std::size_t directory = header.number(4, 4);
  const std::uint32_t entries = header.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * 12;
    if (header.number(entry, 2) != kOrientationTag) continue;
    const std::uint32_t type = header.number(entry + 2, 2);
    if (type == kShortType) return in_range(header.number(entry + 8, 2));
    if (type == kLongType) return in_range(header.number(entry + 8, 4));
    return 1;
  }
  return 1;
}

int xmp_orientation(std::string_view xmp) {
  // Either an attribute, tiff:Orientation="6", or an element, <tiff:Orientation>6<.
  constexpr std::string_view kName = "tiff:Orientation";
  const auto found = xmp.find(kName);
  if (found == std::string_view::npos) return 1;
  std::string_view rest = xmp.substr(found + kName.size());
  if (rest.starts_with("=\""))
    rest.remove_prefix(2);
  else if (rest.starts_with(">"))
    rest.remove_prefix(1);
  else
    return 1;
  return rest.empty() || rest[0] < '0' ? 1 : in_range(static_cast<std::uint32_t>(rest[0] - '0'));
}

Image apply_orientation(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  // 2, 3, 4 mirror or turn by half; 5 to 8 exchange rows and columns.
  const bool exchange = orientation >= 5;
  const int w = image.width, h = image.height, c = image.channels;
  Image out(exchange ? h : w, exchange ? w : h, c);
  for (int y = 0; y < out.height; ++y) {
    std::uint8_t* to = out.row(y);
    for (int x = 0; x < out.width; ++x, to += c) {
      int sx = exchange ? y : x, sy = exchange ? x : y;
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        sx = w - 1 - sx;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        sy = h - 1 - sy;
      std::memcpy(to, image.row(sy) + static_cast<std::ptrdiff_t>(sx) * c,
                  static_cast<std::size_t>(c));
    }
  }
  return out;
}

}  // namespace tenonnx
