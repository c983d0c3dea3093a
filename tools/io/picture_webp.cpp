// SPDX-License-Identifier: Apache-2.0
#include <webp/decode.h>

#include "io/io_error.h"
#include "io/picture_formats.h"

namespace moka::io {

Picture formats::parse_webp(std::span<const std::byte> bytes, std::string_view name, size_t most_pixels) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features{};
  const VP8StatusCode status = WebPGetFeatures(data, bytes.size(), &features);
  if (status != VP8_STATUS_OK) fail(name, "damaged WebP: decoder status ", static_cast<int>(status));
  if (features.has_animation) fail(name, "animated WebP pictures aren't supported, expected a still one");
  require_size(static_cast<size_t>(features.width), static_cast<size_t>(features.height), most_pixels, name);
  Picture picture = Picture::blank(static_cast<size_t>(features.width), static_cast<size_t>(features.height), 4);
  if (!WebPDecodeRGBAInto(data, bytes.size(), picture.pixels.data(), picture.pixels.size(), features.width * 4)) {
    fail(name, "damaged WebP: its pixels can't be decoded");
  }
  return picture;
}

}  // namespace moka::io
