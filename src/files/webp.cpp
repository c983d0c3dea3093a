// SPDX-License-Identifier: Apache-2.0
#include <webp/decode.h>

#include "files/error.h"
#include "files/image_formats.h"

namespace moka::files {

Image decode_webp(std::span<const std::byte> bytes, std::string_view name, int64_t most_pixels) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features{};
  const VP8StatusCode status = WebPGetFeatures(data, bytes.size(), &features);
  if (status != VP8_STATUS_OK) damaged(name, "damaged WebP: decoder status ", static_cast<int>(status));
  if (features.has_animation)
    refuse(ErrorKind::unsupported, name, ": animated WebP pictures aren't supported, expected a still one");
  require_size(features.width, features.height, most_pixels, name);
  Image image(features.width, features.height, PixelFormat::rgba8);
  const auto size = static_cast<size_t>(image.row_bytes * image.height);
  if (!WebPDecodeRGBAInto(data, bytes.size(), image.pixels.get(), size, static_cast<int>(image.row_bytes)))
    damaged(name, "damaged WebP: its pixels can't be decoded");
  return image;
}

}  // namespace moka::files
