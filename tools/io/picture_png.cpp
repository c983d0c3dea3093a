// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "io/io_error.h"
#include "io/picture_formats.h"

namespace moka::io {
namespace {

struct Source {
  const std::byte* at;
  size_t left;
  char message[128];
  jmp_buf escape;
};

void read_bytes(png_structp png, png_bytep to, size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->left) png_error(png, "the file ends early");
  std::memcpy(to, source->at, count);
  source->at += count;
  source->left -= count;
}

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source->message, message, sizeof(source->message) - 1);
  longjmp(source->escape, 1);
}

void on_warning(png_structp, png_const_charp) {}

struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

// Neither of the two functions below owns anything that a longjmp would leak.

bool read_png_header(PngReader& reader, Source& source) {
  if (setjmp(source.escape)) return false;
  png_set_read_fn(reader.png, &source, read_bytes);
  png_set_user_limits(reader.png, 0x7fffffff, 0x7fffffff);
  png_set_chunk_malloc_max(reader.png, 8u << 20);
  png_read_info(reader.png, reader.info);
  png_set_expand(reader.png);
  png_set_scale_16(reader.png);
  const int color = png_get_color_type(reader.png, reader.info);
  const bool gray = color == PNG_COLOR_TYPE_GRAY && !png_get_valid(reader.png, reader.info, PNG_INFO_tRNS);
  if (!gray) {
    png_set_gray_to_rgb(reader.png);
    png_set_add_alpha(reader.png, 255, PNG_FILLER_AFTER);
  }
  png_set_interlace_handling(reader.png);
  return true;
}

bool read_png_pixels(PngReader& reader, Source& source, Picture& picture) {
  if (setjmp(source.escape)) return false;
  png_read_update_info(reader.png, reader.info);
  const size_t row = picture.width * picture.channels;
  if (png_get_rowbytes(reader.png, reader.info) != row) png_error(reader.png, "unexpected row size");
  const int passes = png_get_interlace_type(reader.png, reader.info) == PNG_INTERLACE_ADAM7 ? 7 : 1;
  for (int pass = 0; pass < passes; ++pass) {
    for (size_t y = 0; y < picture.height; ++y) png_read_row(reader.png, picture.pixels.data() + y * row, nullptr);
  }
  png_read_end(reader.png, nullptr);
  return true;
}

}  // namespace

Picture formats::parse_png(std::span<const std::byte> bytes, std::string_view name, size_t most_pixels) {
  Source source{bytes.data(), bytes.size(), {}, {}};
  PngReader reader;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, on_error, on_warning);
  if (reader.png) reader.info = png_create_info_struct(reader.png);
  if (!reader.info) fail(name, "libpng couldn't start");
  if (!read_png_header(reader, source)) fail(name, "damaged PNG: ", source.message);

  const size_t width = png_get_image_width(reader.png, reader.info);
  const size_t height = png_get_image_height(reader.png, reader.info);
  require_size(width, height, most_pixels, name);
  // Deflate compresses by at most 1032 to 1, and a pixel takes at least one bit.
  if (width / 8 * height / 1032 > bytes.size()) {
    fail(name, "damaged PNG: ", bytes.size(), " bytes can't hold ", width, " x ", height, " pixels");
  }
  const bool gray = png_get_color_type(reader.png, reader.info) == PNG_COLOR_TYPE_GRAY &&
                    !png_get_valid(reader.png, reader.info, PNG_INFO_tRNS);
  Picture picture = Picture::blank(width, height, gray ? 1 : 4);
  if (!read_png_pixels(reader, source, picture)) fail(name, "damaged PNG: ", source.message);
  return picture;
}

Bytes encode_png(const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (picture.width == 0 || picture.height == 0 || picture.width > 0x7fffffff || picture.height > 0x7fffffff) {
    fail("png", "expected a picture with pixels, got ", picture.width, " x ", picture.height);
  }
  if (picture.pixels.size() != picture.width * picture.height * picture.channels) {
    fail("png", "expected ", picture.width * picture.height * picture.channels, " bytes of pixels, got ",
         picture.pixels.size());
  }
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  switch (picture.channels) {
    case 1: image.format = PNG_FORMAT_GRAY; break;
    case 3: image.format = PNG_FORMAT_RGB; break;
    case 4: image.format = PNG_FORMAT_RGBA; break;
    default: fail("png", "expected 1, 3 or 4 channels, got ", picture.channels);
  }
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  Bytes out(size);
  if (!png_image_write_to_memory(&image, out.data(), &size, 0, picture.pixels.data(), 0, nullptr)) {
    fail("png", "libpng couldn't write it: ", image.message);
  }
  out.resize(size);
  return out;
}

void write_png(const std::filesystem::path& path, const Picture& picture) { write_file(path, encode_png(picture)); }

}  // namespace moka::io
