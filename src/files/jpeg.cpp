// SPDX-License-Identifier: Apache-2.0
// jpeglib.h needs size_t and FILE declared before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <csetjmp>
#include <cstring>

#include "files/error.h"
#include "files/image_formats.h"
#include "files/pixels.h"

namespace moka::files {
namespace {

constexpr int kMostScans = 200;  // a progressive file has about ten; each takes a pass over the picture

struct Errors {
  jpeg_error_mgr manager;
  jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void give_up(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  errors->manager.format_message(info, errors->message);
  longjmp(errors->escape, 1);
}

void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  ++info->err->num_warnings;
  if (info->err->msg_code == JWRN_JPEG_EOF || info->err->msg_code == JWRN_HIT_MARKER) give_up(info);
}

void on_progress(j_common_ptr info) {
  if (!info->is_decompressor) return;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMostScans) {
    auto* errors = reinterpret_cast<Errors*>(info->err);
    std::snprintf(errors->message, sizeof(errors->message), "more than %d scans", kMostScans);
    longjmp(errors->escape, 1);
  }
}

struct JpegReader {
  jpeg_decompress_struct jpeg{};
  jpeg_progress_mgr progress{};
  Errors errors{};
  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }
};

// Neither of the two functions below owns anything that a longjmp would leak.

bool read_jpeg_header(JpegReader& reader, std::span<const std::byte> bytes) {
  if (setjmp(reader.errors.escape)) return false;
  jpeg_create_decompress(&reader.jpeg);
  reader.progress.progress_monitor = on_progress;
  reader.jpeg.progress = &reader.progress;
  jpeg_mem_src(&reader.jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_save_markers(&reader.jpeg, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&reader.jpeg, TRUE);
  return true;
}

bool read_jpeg_pixels(JpegReader& reader, Image& image, unsigned char* row) {
  if (setjmp(reader.errors.escape)) return false;
  jpeg_start_decompress(&reader.jpeg);
  while (reader.jpeg.output_scanline < reader.jpeg.output_height) {
    unsigned char* to = row_of(image, reader.jpeg.output_scanline);
    unsigned char* target = row ? row : to;
    if (jpeg_read_scanlines(&reader.jpeg, &target, 1) != 1) return false;
    for (int64_t x = 0; row && x < image.width; ++x) {
      // Adobe stores inverted inks, so the product of ink and black is the remaining light.
      const bool inverted = reader.jpeg.saw_Adobe_marker;
      for (int64_t c = 0; c < 3; ++c) {
        const int ink = row[x * 4 + c], black = row[x * 4 + 3];
        const int light = inverted ? ink * black : (255 - ink) * (255 - black);
        to[x * 4 + c] = static_cast<unsigned char>((light + 127) / 255);
      }
    }
  }
  jpeg_finish_decompress(&reader.jpeg);
  return true;
}

}  // namespace

Image decode_jpeg(std::span<const std::byte> bytes, std::string_view name, int64_t most_pixels) {
  JpegReader reader;
  reader.jpeg.err = jpeg_std_error(&reader.errors.manager);
  reader.errors.manager.error_exit = give_up;
  reader.errors.manager.emit_message = on_message;
  if (!read_jpeg_header(reader, bytes)) damaged(name, "damaged JPEG: ", reader.errors.message);
  require_size(reader.jpeg.image_width, reader.jpeg.image_height, most_pixels, name);

  int orientation = 1;
  for (auto* marker = reader.jpeg.marker_list; marker && orientation == 1; marker = marker->next) {
    orientation = exif_orientation(std::as_bytes(std::span<const JOCTET>(marker->data, marker->data_length)));
  }
  const bool gray = reader.jpeg.jpeg_color_space == JCS_GRAYSCALE;
  const bool inks = reader.jpeg.jpeg_color_space == JCS_CMYK || reader.jpeg.jpeg_color_space == JCS_YCCK;
  reader.jpeg.out_color_space = gray ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_EXT_RGBA;
  Image image(reader.jpeg.image_width, reader.jpeg.image_height, gray ? PixelFormat::gray8 : PixelFormat::rgba8);
  for (int64_t y = 0; inks && y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x) pixel_at(image, x, y)[3] = 255;
  std::vector<unsigned char> row(inks ? static_cast<size_t>(image.row_bytes) : 0);
  if (!read_jpeg_pixels(reader, image, inks ? row.data() : nullptr))
    damaged(name, "damaged JPEG: ", reader.errors.message);
  return upright(image, orientation);
}

}  // namespace moka::files
