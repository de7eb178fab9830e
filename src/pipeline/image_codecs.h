// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// One decoder a format, chosen by image_file.cc from the first bytes. Each gives RGB as stored, and
// the EXIF orientation that the file carries (1 where it carries none).
#pragma once

#include <string_view>

#include "pipeline/image.h"

namespace tenonnx {

struct DecodedFile {
  Image image;
  int orientation = 1;  // 1 to 8; Source: EXIF 2.3, tag 0x0112
};

Result<DecodedFile> decode_jpeg(std::string_view bytes, std::string_view where);
Result<DecodedFile> decode_png(std::string_view bytes, std::string_view where);
Result<DecodedFile> decode_ppm(std::string_view bytes, std::string_view where);

// DataLoss for a width or height of zero, Unsupported above kMaxPixels.
Status check_image_size(std::int64_t width, std::int64_t height, std::string_view where);

// Tag 0x0112 of the first directory of a TIFF header (what stands in a JPEG's APP1 after
// "Exif\0\0" and in a PNG's eXIf); 1 where there is none or it is no number from 1 to 8.
int exif_orientation(std::string_view tiff);
// tiff:Orientation in an XMP packet; 1 where there is none.
int xmp_orientation(std::string_view xmp);
// Turns and mirrors so that the image stands upright.
Image apply_orientation(Image image, int orientation);

}  // namespace tenonnx
