// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "files/error.h"
#include "files/image_formats.h"
#include "files/pixels.h"
#include "moka/files.h"

namespace moka {
namespace files {
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

bool read_png_pixels(PngReader& reader, Source& source, Image& image) {
  if (setjmp(source.escape)) return false;
  png_read_update_info(reader.png, reader.info);
  if (png_get_rowbytes(reader.png, reader.info) != static_cast<size_t>(image.row_bytes))
    png_error(reader.png, "unexpected row size");
  const int passes = png_get_interlace_type(reader.png, reader.info) == PNG_INTERLACE_ADAM7 ? 7 : 1;
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < image.height; ++y) png_read_row(reader.png, row_of(image, y), nullptr);
  }
  png_read_end(reader.png, nullptr);
  return true;
}

}  // namespace

Image decode_png(std::span<const std::byte> bytes, std::string_view name, int64_t most_pixels) {
  Source source{bytes.data(), bytes.size(), {}, {}};
  PngReader reader;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, on_error, on_warning);
  if (reader.png) reader.info = png_create_info_struct(reader.png);
  if (!reader.info) refuse(ErrorKind::out_of_budget, name, ": libpng couldn't start");
  if (!read_png_header(reader, source)) damaged(name, "damaged PNG: ", source.message);

  const int64_t width = png_get_image_width(reader.png, reader.info);
  const int64_t height = png_get_image_height(reader.png, reader.info);
  const bool gray = png_get_color_type(reader.png, reader.info) == PNG_COLOR_TYPE_GRAY &&
                    !png_get_valid(reader.png, reader.info, PNG_INFO_tRNS);
  require_size(width, height, most_pixels, name);
  // Deflate compresses by at most 1032 to 1, and a pixel takes at least one bit.
  if (width / 8 * height / 1032 > static_cast<int64_t>(bytes.size()))
    damaged(name, "damaged PNG: ", bytes.size(), " bytes can't hold ", width, " x ", height, " pixels");
  Image image(width, height, gray ? PixelFormat::gray8 : PixelFormat::rgba8);
  if (!read_png_pixels(reader, source, image)) damaged(name, "damaged PNG: ", source.message);
  return image;
}

namespace {

bool is_opaque(const Image& image) {
  if (bytes_per_pixel(image.format) != 4 || image.format == PixelFormat::gray_float32) return true;
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x)
      if (pixel_at(image, x, y)[3] != 255) return false;
  return true;
}

}  // namespace
}  // namespace files

std::vector<std::byte> encode_png(const Image& given) {
  files::require_pixels(given);
  if (given.format == PixelFormat::gray_float32 || given.format == PixelFormat::gray_float16)
    files::refuse(ErrorKind::invalid_argument, "png: expected an image of 8 bits a channel, got one of floats");
  const bool gray = given.format == PixelFormat::gray8, opaque = files::is_opaque(given);
  const Image image = converted(given, gray ? PixelFormat::gray8 : opaque ? PixelFormat::rgb8 : PixelFormat::rgba8);
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = gray ? PNG_FORMAT_GRAY : opaque ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::vector<std::byte> out(size);
  if (!png_image_write_to_memory(&png, out.data(), &size, 0, image.pixels.get(),
                                 static_cast<png_int_32>(image.row_bytes), nullptr))
    files::refuse(ErrorKind::internal, "png: libpng couldn't write it: ", png.message);
  out.resize(size);
  return out;
}

}  // namespace moka
