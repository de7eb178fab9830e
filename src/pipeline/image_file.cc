// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include "pipeline/image_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <new>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "pipeline/image_codecs.h"

namespace tenonnx {
namespace {

using namespace std::string_view_literals;

// First bytes of formats that are not read, so that the message can name them.
std::string_view looks_like(std::string_view bytes) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kOthers = {{
      {"GIF8"sv, "GIF"sv},
      {"BM"sv, "BMP"sv},
      {"II*\0"sv, "TIFF"sv},
      {"MM\0*"sv, "TIFF"sv},
      {"P1"sv, "plain PBM"sv},
      {"P2"sv, "plain PGM"sv},
      {"P3"sv, "plain PPM"sv},
      {"P4"sv, "PBM"sv},
      {"%PDF"sv, "PDF"sv},
      {"\x93NUMPY"sv, "NumPy .npy"sv},
      {"{"sv, "JSON"sv},
  }};
  if (bytes.starts_with("RIFF") && bytes.size() > 12 && bytes.substr(8, 4) == "WEBP") return "WebP";
  if (bytes.size() > 12 && bytes.substr(4, 4) == "ftyp") return "HEIF, AVIF or MP4";
  for (const auto& [start, name] : kOthers)
    if (bytes.starts_with(start)) return name;
  return {};
}

Result<DecodedFile> decode(std::string_view bytes, std::string_view where) {
  if (bytes.empty()) return DataLoss("{}: the file is empty", where);
  if (bytes.starts_with("\xFF\xD8"sv)) return decode_jpeg(bytes, where);
  if (bytes.starts_with("\x89PNG\r\n\x1A\n"sv)) return decode_png(bytes, where);
  if (bytes.starts_with("P5") || bytes.starts_with("P6")) return decode_ppm(bytes, where);
  const std::string_view other = looks_like(bytes);
  return Unsupported("{}: not an image that can be read{}: JPEG, PNG and PPM (P5, P6) are", where,
                     other.empty() ? "" : fmt::format(" (it looks like {})", other));
}

}  // namespace

Status check_image_size(std::int64_t width, std::int64_t height, std::string_view where) {
  if (width < 1 || height < 1)
    return DataLoss("{}: the image has a size of zero: {} x {}", where, width, height);
  if (width > kMaxPixels || height > kMaxPixels || width * height > kMaxPixels)
    return Unsupported("{}: {} x {} pixels are beyond the limit of {} megapixels", where, width,
                       height, kMaxPixels / 1'000'000);
  return {};
}

Result<Image> decode_image(std::string_view bytes, std::string_view where) {
  try {
    TENONNX_ASSIGN_OR_RETURN(DecodedFile file, decode(bytes, where));
    return apply_orientation(std::move(file.image), file.orientation);
  } catch (const std::bad_alloc&) {
    return Io("{}: not enough memory to decode the image", where);
  }
}

Result<Image> read_image(const std::filesystem::path& path) {
  TENONNX_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
  return decode_image(file->bytes(), path.string());
}

bool is_image_name(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array kNames = {".jpg"sv, ".jpeg"sv, ".png"sv, ".ppm"sv, ".pgm"sv};
  return std::find(kNames.begin(), kNames.end(), extension) != kNames.end();
}

}  // namespace tenonnx
