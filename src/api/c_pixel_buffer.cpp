// SPDX-License-Identifier: Apache-2.0
#include "api/c_support.h"

static_assert(MOKA_P010_FULL == static_cast<int>(moka::PixelBufferFormat::p010_full));
static_assert(MOKA_BT2020 == static_cast<int>(moka::YCbCrMatrix::bt2020));
static_assert(MOKA_CENTER_CROP == static_cast<int>(moka::ImageFit::center_crop));

namespace moka::api {

namespace {

/// The planes of a buffer, or the memory of all of them.
PixelBuffer of_planes(const moka_pixel_buffer& b, PixelBufferFormat format) {
  if (b.contiguous_bytes > 0) {
    if (b.planes[1] != nullptr || b.planes[2] != nullptr)
      wrong("buffer: expected planes[0] alone, as contiguous_bytes is given, got several planes");
    if (b.row_bytes[0] != 0 || b.row_bytes[1] != 0 || b.row_bytes[2] != 0)
      wrong("buffer: expected row_bytes of 0, as contiguous_bytes is given, got rows with gaps");
    const std::shared_ptr<const uint8_t> samples(std::shared_ptr<const uint8_t>(),
                                                 static_cast<const uint8_t*>(b.planes[0]));
    return PixelBuffer(b.width, b.height, format, samples, b.contiguous_bytes);
  }
  const bool is_planar = format == PixelBufferFormat::i420 || format == PixelBufferFormat::i420_full;
  std::vector<PixelPlane> planes;
  for (size_t p = 0; p < (is_planar || b.planes[2] != nullptr ? 3u : 2u); p++)
    planes.emplace_back(b.planes[p], b.row_bytes[p]);
  return PixelBuffer(b.width, b.height, format, planes);
}

}  // namespace

PixelBuffer borrowed_pixel_buffer(const moka_pixel_buffer* buffer) {
  need(buffer, "buffer");
  const auto b = options_from<moka_pixel_buffer>(buffer, MOKA_PIXEL_BUFFER_INIT, "buffer");
  PixelBuffer out = of_planes(b, enumerator<PixelBufferFormat>(b.format, MOKA_P010_FULL + 1, "pixel buffer format"));
  out.matrix = enumerator<YCbCrMatrix>(b.matrix, MOKA_BT2020 + 1, "matrix");
  out.fit = enumerator<ImageFit>(b.fit, MOKA_CENTER_CROP + 1, "fit");
  if (b.region != nullptr) out.region = {b.region->x, b.region->y, b.region->width, b.region->height};
  return out;
}

}  // namespace moka::api

extern "C" {

size_t moka_pixel_buffer_bytes(int64_t width, int64_t height, moka_pixel_buffer_format format) {
  size_t bytes = 0;
  moka::api::guarded([&] {
    const auto f = moka::api::enumerator<moka::PixelBufferFormat>(format, MOKA_P010_FULL + 1, "pixel buffer format");
    bytes = moka::PixelBuffer::contiguous_bytes(width, height, f);
  });
  return bytes;
}

}  // extern "C"
