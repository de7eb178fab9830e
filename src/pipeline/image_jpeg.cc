// SPDX-License-Identifier: Apache-2.0
// Copyright The tenonnx authors
#include <csetjmp>
#include <cstdio>
// jpeglib.h needs FILE, so <cstdio> stands before it.
#include <jerror.h>
#include <jpeglib.h>

#include <string>
#include <utility>

#include "base/status.h"
#include "pipeline/image_codecs.h"

namespace tenonnx {
namespace {

// A progressive file of a few KB can hold thousands of scans, each a pass over the whole image;
// real ones have about ten.
constexpr int kMaxScans = 500;

struct ErrorManager {
  jpeg_error_mgr base;  // first: libjpeg knows only this part
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
  bool truncated = false;
  bool hole = false;
};

[[noreturn]] void on_error(j_common_ptr info) {
  auto* errors = reinterpret_cast<ErrorManager*>(info->err);
  errors->base.format_message(info, errors->message);
  std::longjmp(errors->jump, 1);
}

void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;  // a trace, no warning
  auto* errors = reinterpret_cast<ErrorManager*>(info->err);
  if (errors->base.msg_code == JWRN_JPEG_EOF) errors->truncated = true;
  if (errors->base.msg_code == JWRN_HIT_MARKER) errors->hole = true;
}

void on_progress(j_common_ptr info) {
  auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number > kMaxScans) ERREXIT(info, JERR_NOTIMPL);
}

// Everything that a longjmp may leave behind: nothing in it has a destructor that it would skip,
// because it lives in the caller's frame.
struct Decoding {
  jpeg_decompress_struct info{};
  ErrorManager errors{};
  jpeg_progress_mgr progress{};
  Image image;
  std::vector<std::uint8_t> row;
  Status status;
  int orientation = 1;
};

void read_markers(Decoding& d) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  constexpr std::string_view kXmp("http://ns.adobe.com/xap/1.0/\0", 29);
  int exif = 1, xmp = 1;
  for (auto* marker = d.info.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (data.starts_with(kExif)) exif = exif_orientation(data.substr(kExif.size()));
    if (data.starts_with(kXmp)) xmp = xmp_orientation(data.substr(kXmp.size()));
  }
  d.orientation = exif != 1 ? exif : xmp;
}

// As Pillow converts CMYK: each of red, green, blue is (255 - K) less its share of C, M or Y.
// Adobe's files hold all four inverted.
void cmyk_to_rgb(const std::uint8_t* cmyk, int width, bool inverted, std::uint8_t* rgb) {
  for (int x = 0; x < width; ++x, cmyk += 4) {
    const unsigned flip = inverted ? 255 : 0;
    const unsigned white = 255 - (cmyk[3] ^ flip);
    for (int c = 0; c < 3; ++c) {
      const unsigned t = (cmyk[c] ^ flip) * white + 128;
      *rgb++ = static_cast<std::uint8_t>(white - (((t >> 8) + t) >> 8));
    }
  }
}

// Runs under setjmp: declares no object that has a destructor.
void run(Decoding& d, std::string_view bytes, std::string_view where) {
  jpeg_create_decompress(&d.info);
  d.progress.progress_monitor = on_progress;
  d.info.progress = &d.progress;
  jpeg_save_markers(&d.info, JPEG_APP0 + 1, 0xFFFF);
  jpeg_mem_src(&d.info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&d.info, TRUE);
  d.status = check_image_size(d.info.image_width, d.info.image_height, where);
  if (!d.status.ok()) return;
  read_markers(d);
  const bool cmyk = d.info.num_components == 4;
  d.info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  // Pillow's choices: the accurate integer DCT and smooth chroma upsampling.
  d.info.dct_method = JDCT_ISLOW;
  d.info.do_fancy_upsampling = TRUE;
  jpeg_start_decompress(&d.info);
  d.image = Image(static_cast<int>(d.info.output_width), static_cast<int>(d.info.output_height), 3);
  if (cmyk) d.row.resize(static_cast<std::size_t>(d.info.output_width) * 4);
  while (d.info.output_scanline < d.info.output_height) {
    std::uint8_t* to = d.image.row(static_cast<int>(d.info.output_scanline));
    JSAMPROW row = cmyk ? d.row.data() : to;
    jpeg_read_scanlines(&d.info, &row, 1);
    if (cmyk) cmyk_to_rgb(d.row.data(), d.image.width, d.info.saw_Adobe_marker != 0, to);
  }
  jpeg_finish_decompress(&d.info);
}

}  // namespace

Result<DecodedFile> decode_jpeg(std::string_view bytes, std::string_view where) {
  Decoding d;
  d.info.err = jpeg_std_error(&d.errors.base);
  d.errors.base.error_exit = on_error;
  d.errors.base.emit_message = on_message;
  if (setjmp(d.errors.jump) == 0)
    run(d, bytes, where);
  else if (!d.errors.truncated)
    d.status = DataLoss("{}: a JPEG that cannot be decoded: {}", where, d.errors.message);
  jpeg_destroy_decompress(&d.info);
  TENONNX_RETURN_IF_ERROR(d.status);
  if (d.errors.truncated)
    return DataLoss("{}: the JPEG is truncated: it ends after {} bytes, too early", where,
                    bytes.size());
  if (d.errors.hole) return DataLoss("{}: the JPEG is damaged: image data is missing", where);
  return DecodedFile{std::move(d.image), d.orientation};
}

}  // namespace tenonnx
