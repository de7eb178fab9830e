// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// P5 (grey) and P6 (RGB) with 8 bits a channel. Source: netpbm's ppm(5) and pgm(5).
#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "base/status.h"
#include "pipeline/image_codecs.h"

namespace tenonnx {
namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// The next number of the header, behind white space and comments; -1 where there is none.
std::int64_t next_number(std::string_view& in) {
  while (!in.empty() && (is_space(in[0]) || in[0] == '#')) {
    if (in[0] == '#') {
      const auto end = in.find('\n');
      in.remove_prefix(end == std::string_view::npos ? in.size() : end);
    } else {
      in.remove_prefix(1);
    }
  }
  std::int64_t value = -1;
  while (!in.empty() && in[0] >= '0' && in[0] <= '9') {
    value = (value < 0 ? 0 : value) * 10 + (in[0] - '0');
    if (value > 1'000'000'000) return -1;
    in.remove_prefix(1);
  }
  return value;
}

}  // namespace

Result<DecodedFile> decode_ppm(std::string_view bytes, std::string_view where) {
  const int channels = bytes.starts_with("P6") ? 3 : 1;
  std::string_view in = bytes.substr(2);
  const std::int64_t width = next_number(in), height = next_number(in), top = next_number(in);
  if (width < 0 || height < 0 || top < 1 || in.empty() || !is_space(in[0]))
    return DataLoss("{}: a PPM header that cannot be read: expected {} WIDTH HEIGHT 255", where,
                    bytes.substr(0, 2));
  TENONNX_RETURN_IF_ERROR(check_image_size(width, height, where));
  if (top != 255)
    return Unsupported("{}: a PPM with maximum value {}; only 255 (8 bits a channel) is read",
                       where, top);
  in.remove_prefix(1);
  Image image(static_cast<int>(width), static_cast<int>(height), channels);
  if (in.size() < image.pixels.size())
    return DataLoss("{}: the PPM is truncated: {} x {} pixels need {} bytes, the file holds {}",
                    where, width, height, image.pixels.size(), in.size());
  std::copy_n(in.begin(), image.pixels.size(), image.pixels.begin());
  TENONNX_ASSIGN_OR_RETURN(Image rgb, to_rgb(view_of(image)));
  return DecodedFile{std::move(rgb), 1};
}

}  // namespace tenonnx
