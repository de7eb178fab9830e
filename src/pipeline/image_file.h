// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
//
// JPEG, PNG and PPM files to RGB pixels as Pillow's ImageOps.exif_transpose(Image.open(f)) and
// .convert("RGB") give them; PNG out. Where it differs from Pillow, and why:
// - 16-bit grey PNGs keep their high byte; Pillow clips at 255, which makes such images white.
// - A truncated file, and a JPEG with a hole in its data, is an error; Pillow fills a hole with
// grey.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/image.h"

namespace tenonnx {

// RGB, the EXIF orientation applied. DataLoss for a truncated or damaged file and for a size of
// zero, Unsupported for another format (the message says which it looks like) and for more than 100
// megapixels. `where` (the file's name) begins every message.
Result<Image> decode_image(std::string_view bytes, std::string_view where);
Result<Image> read_image(const std::filesystem::path& path);

// Channels 1, 3 or 4. The same pixels give the same bytes.
Result<std::string> encode_png(const Image& image);
Status write_png(const std::filesystem::path& path, const Image& image);

// Whether the name ends like a file that read_image takes: .jpg, .jpeg, .png, .ppm, .pgm.
bool is_image_name(const std::filesystem::path& path);

}  // namespace tenonnx
